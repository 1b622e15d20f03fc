package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkSearch ranks an account that is full, by the dimension of its vectors.
func BenchmarkSearch(b *testing.B) {
	for _, dimension := range []int{384, 1536} {
		b.Run(fmt.Sprint(dimension), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			x := newIndex("", dimension)
			vec := func() []float32 {
				v := make([]float32, dimension)
				for i := range v {
					v[i] = float32(r.NormFloat64())
				}
				v, err := unit(v)
				if err != nil {
					b.Fatal(err)
				}
				return v
			}
			word := func() string { return fmt.Sprint("word", int(r.ExpFloat64()*300)) }
			for i := range 20_000 {
				text := ""
				for range 60 {
					text += word() + " "
				}
				x.add(fmt.Sprint(i), 0, Item{ID: fmt.Sprint(i), Text: text}, vec(), 0)
			}
			q, text := vec(), word()+" "+word()+" "+word()
			for b.Loop() {
				x.rank(q, text, 100, func(*row) bool { return true })
			}
			b.ReportMetric(float64(x.bytes())/(1<<20), "MiB")
		})
	}
}
