package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/itchyny/gojq"
)

// jq runs gojq. As there, keys of objects come sorted.
func jq(c *Call) int {
	c.Args = jqArgs(c.Args)
	f, ok := c.flags("r|raw-output j|join-output a|ascii-output c|compact-output n|null-input s|slurp R|raw-input e|exit-status " +
		"S|sort-keys C|color-output M|monochrome-output tab indent: f|from-file: arg: argjson: slurpfile: rawfile: args jsonargs unbuffered")
	if !ok {
		return 2
	}
	vars, values, err := c.jqVars(f)
	if err != nil {
		return c.usage("%v", err)
	}
	src := ""
	if f.has("f") {
		r, err := c.open(f.str("f", ""))
		var data []byte
		if err == nil {
			data, err = slurp(r)
		}
		if err != nil {
			return c.usage("%s: %s", f.str("f", ""), why(err))
		}
		src = string(data)
	} else if len(f.args) > 0 {
		src, f.args = f.args[0], f.args[1:]
	} else {
		src = "."
	}
	if err := CheckSource(src); err != nil {
		return c.usage("%v", err)
	}
	query, err := gojq.Parse(src)
	if err != nil {
		c.errorf("compile error: %v", err)
		return 3
	}
	in := &jqInputs{c: c, f: f, names: f.args}
	if f.has("args") || f.has("jsonargs") {
		in.names = nil
	}
	code, err := gojq.Compile(query, gojq.WithVariables(vars), gojq.WithInputIter(in), gojq.WithEnvironLoader(c.Env))
	if err != nil {
		c.errorf("compile error: %v", err)
		return 3
	}
	j := &jqRun{c: c, f: f, indent: "  "}
	if n, ok := f.num("indent", 2); ok && n >= 0 && n <= 8 {
		j.indent = strings.Repeat(" ", n)
	}
	if f.has("tab") {
		j.indent = "\t"
	}
	return j.run(code, in, values)
}

// jqArgs joins the two words after --arg and the like.
func jqArgs(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--arg", "--argjson", "--slurpfile", "--rawfile":
			if i+2 < len(args) {
				out = append(out, args[i]+"="+args[i+1]+"\x00"+args[i+2])
				i += 2
				continue
			}
		}
		out = append(out, args[i])
	}
	return out
}

// jqVars reads the named and positional arguments.
func (c *Call) jqVars(f *flags) (names []string, values []any, err error) {
	named := map[string]any{}
	add := func(name string, v any) {
		names, values = append(names, "$"+name), append(values, v)
		named[name] = v
	}
	for _, kind := range []string{"arg", "argjson", "slurpfile", "rawfile"} {
		for _, pair := range f.vals[kind] {
			name, text, _ := strings.Cut(pair, "\x00")
			var v any = text
			if kind == "slurpfile" || kind == "rawfile" {
				data, err := c.FS.ReadFile(c.abs(text))
				if err != nil {
					return nil, nil, err
				}
				text, v = string(data), string(data)
			}
			switch kind {
			case "argjson":
				if v, err = decodeJSON(text); err != nil {
					return nil, nil, err
				}
			case "slurpfile":
				if v, err = decodeAll(text); err != nil {
					return nil, nil, err
				}
			}
			add(name, v)
		}
	}
	positional := []any{}
	if (f.has("args") || f.has("jsonargs")) && len(f.args) > 1 {
		for _, arg := range f.args[1:] {
			var v any = arg
			if f.has("jsonargs") {
				if v, err = decodeJSON(arg); err != nil {
					return nil, nil, err
				}
			}
			positional = append(positional, v)
		}
	}
	add("ARGS", map[string]any{"named": named, "positional": positional})
	return names, values, nil
}

func decodeJSON(s string) (any, error) {
	all, err := decodeAll(s)
	if err == nil && len(all) != 1 {
		err = errors.New("not one JSON value")
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func decodeAll(s string) ([]any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	all := []any{}
	for {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// jqInputs yields the inputs, one value after the other.
type jqInputs struct {
	c     *Call
	f     *flags
	names []string
	began bool
	rest  []any
	raw   string
	dec   *json.Decoder
	code  int
}

// Next implements gojq.Iter; an error comes as a value.
func (in *jqInputs) Next() (any, bool) {
	if !in.began {
		in.began = true
		data, code := in.c.slurpAll(in.names)
		in.code = code
		switch {
		case in.f.has("R") && in.f.has("s"):
			in.rest = []any{string(data)}
		case in.f.has("R"):
			for _, line := range splitLines(data) {
				in.rest = append(in.rest, line)
			}
		case in.f.has("s"):
			all, err := decodeAll(string(data))
			if err != nil {
				return err, true
			}
			in.rest = []any{all}
		default:
			in.dec = json.NewDecoder(bytes.NewReader(data))
			in.dec.UseNumber()
		}
	}
	if in.dec != nil {
		var v any
		err := in.dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil, false
		}
		if err != nil {
			in.dec = nil
			return err, true
		}
		return v, true
	}
	if len(in.rest) == 0 {
		return nil, false
	}
	v := in.rest[0]
	in.rest = in.rest[1:]
	return v, true
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
	if s, ok := v.(string); ok && (j.f.has("r") || j.f.has("j")) {
		_, err := io.WriteString(j.c.out, s+end)
		return err
	}
	data, err := gojq.Marshal(v)
	if err != nil {
		return err
	}
	if j.f.has("a") {
		data = asciiJSON(data)
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

// asciiJSON escapes what is not ASCII.
func asciiJSON(data []byte) []byte {
	var b strings.Builder
	for _, r := range string(data) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			b.WriteString(hexEscape(0xd800 + r>>10))
			b.WriteString(hexEscape(0xdc00 + r&0x3ff))
		default:
			b.WriteString(hexEscape(r))
		}
	}
	return []byte(b.String())
}

func hexEscape(r rune) string {
	const digits = "0123456789abcdef"
	return `\u` + string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}
