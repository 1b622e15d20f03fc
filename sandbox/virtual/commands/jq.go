package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/itchyny/gojq"
)

// jq runs gojq. As there, keys of objects come sorted.
func jq(c *Call, f *flags) int {
	if !f.has("f") && len(f.args) == 0 {
		f.args = []string{"."}
	}
	src, ok := c.program(f, "", false)
	if !ok {
		return 2
	}
	vars, values, err := c.jqVars(f)
	if err != nil {
		return c.usage("%v", err)
	}
	query, err := gojq.Parse(src)
	if err != nil {
		c.errorf("compile error: %v", err)
		return 3
	}
	in := &jqInputs{c: c, f: f, names: f.args}
	if f.has("args") {
		in.names = nil
	}
	code, err := gojq.Compile(query, gojq.WithVariables(vars), gojq.WithInputIter(in), gojq.WithEnvironLoader(c.Env))
	if err != nil {
		c.errorf("compile error: %v", err)
		return 3
	}
	j := &jqRun{c: c, f: f, indent: strings.Repeat(" ", min(f.num("indent", 2), 8))}
	if f.has("tab") {
		j.indent = "\t"
	}
	return j.run(code, in, values)
}

// jqVars reads the named and positional arguments.
func (c *Call) jqVars(f *flags) (names []string, values []any, err error) {
	named := map[string]any{}
	add := func(name string, v any) {
		names, values = append(names, "$"+name), append(values, v)
		named[name] = v
	}
	for _, pair := range f.vals["arg"] {
		name, text, _ := strings.Cut(pair, "\x00")
		add(name, text)
	}
	for _, pair := range f.vals["argjson"] {
		name, text, _ := strings.Cut(pair, "\x00")
		all, err := decodeAll([]byte(text))
		if err != nil || len(all) != 1 {
			return nil, nil, fmt.Errorf("--argjson %s: not one JSON value", name)
		}
		add(name, all[0])
	}
	for _, kind := range []string{"slurpfile", "rawfile"} {
		for _, pair := range f.vals[kind] {
			name, file, _ := strings.Cut(pair, "\x00")
			data, err := c.load(file)
			var v any = string(data)
			if err == nil && kind == "slurpfile" {
				v, err = decodeAll(data)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %s", file, Why(err))
			}
			add(name, v)
		}
	}
	positional := []any{}
	if f.has("args") {
		for _, arg := range f.args {
			positional = append(positional, arg)
		}
	}
	add("ARGS", map[string]any{"named": named, "positional": positional})
	return names, values, nil
}

// A jsonIter yields the values of a text; an error comes as a value, the last.
type jsonIter struct{ dec *json.Decoder }

func newJSONIter(data []byte) *jsonIter {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return &jsonIter{dec}
}

// Next implements gojq.Iter.
func (it *jsonIter) Next() (any, bool) {
	if it.dec == nil {
		return nil, false
	}
	var v any
	err := it.dec.Decode(&v)
	if err == nil {
		return v, true
	}
	it.dec = nil
	return err, !errors.Is(err, io.EOF)
}

func decodeAll(data []byte) ([]any, error) {
	it, all := newJSONIter(data), []any{}
	for v, ok := it.Next(); ok; v, ok = it.Next() {
		if err, bad := v.(error); bad {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// jqInputs yields the inputs, which are read when the first is asked for.
type jqInputs struct {
	c     *Call
	f     *flags
	names []string
	iter  gojq.Iter
	code  int
}

// Next implements gojq.Iter; an error comes as a value.
func (in *jqInputs) Next() (any, bool) {
	if in.iter != nil {
		return in.iter.Next()
	}
	data, code := in.c.slurpAll(in.names)
	in.code = code
	switch {
	case in.f.has("R") && in.f.has("s"):
		in.iter = gojq.NewIter(string(data))
	case in.f.has("R"):
		in.iter = gojq.NewIter(splitLines(data)...)
	case in.f.has("s"):
		all, err := decodeAll(data)
		if err != nil {
			return err, true
		}
		in.iter = gojq.NewIter(all)
	default:
		in.iter = newJSONIter(data)
	}
	return in.iter.Next()
}

type jqRun struct {
	c      *Call
	f      *flags
	indent string
	last   any
}

func (j *jqRun) run(code *gojq.Code, in *jqInputs, vars []any) int {
	status := 0
	j.last = errStop // nothing was printed
	for {
		var v any
		if !j.f.has("n") {
			var ok bool
			if v, ok = in.Next(); !ok {
				break
			}
			if err, bad := v.(error); bad {
				return j.c.usage("parse error: %v", err)
			}
		}
		iter := code.RunWithContext(j.c.ctx, v, vars...)
		for {
			out, ok := iter.Next()
			if !ok {
				break
			}
			if err, bad := out.(error); bad {
				if halted, ok := errors.AsType[*gojq.HaltError](err); ok {
					return j.halt(halted)
				}
				if j.c.ctx.Err() != nil {
					return 1
				}
				j.c.errorf("error: %v", err)
				status = 5
				break
			}
			j.last = out
			if err := j.print(out); err != nil {
				return 1
			}
		}
		if j.f.has("n") {
			break
		}
	}
	switch {
	case status != 0:
		return status
	case in.code != 0:
		return 2
	case j.f.has("e") && j.last == errStop:
		return 4
	case j.f.has("e") && (j.last == nil || j.last == false):
		return 1
	}
	return 0
}

func (j *jqRun) halt(h *gojq.HaltError) int {
	if s, ok := h.Value().(string); ok {
		_, _ = io.WriteString(j.c.Stderr, s)
	} else if h.Value() != nil {
		data, _ := gojq.Marshal(h.Value()) // a value of gojq's own
		_, _ = io.WriteString(j.c.Stderr, string(data)+"\n")
	}
	return h.ExitCode()
}

func (j *jqRun) print(v any) error {
	end := "\n"
	if j.f.has("j") {
		end = ""
	}
	if s, ok := v.(string); ok && j.f.has("r", "j") {
		_, err := io.WriteString(j.c.out, s+end)
		return err
	}
	data, err := gojq.Marshal(v)
	if err != nil {
		return err
	}
	if !j.f.has("c") && j.indent != "" {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", j.indent); err != nil {
			return err
		}
		data = b.Bytes()
	}
	_, err = j.c.out.Write(append(data, end...))
	return err
}
