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
	j := &jqRun{c: c, f: f, indent: strings.Repeat(" ", min(f.num("indent", 2), 8)), last: errStop}
	code, err := gojq.Compile(query, gojq.WithVariables(vars), gojq.WithInputIter(j), gojq.WithEnvironLoader(c.Env))
	if err != nil {
		c.errorf("compile error: %v", err)
		return 3
	}
	if f.has("tab") {
		j.indent = "\t"
	}
	return j.run(code, values)
}

// jqVars reads the named arguments.
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
	for _, pair := range f.vals["slurpfile"] {
		name, file, _ := strings.Cut(pair, "\x00")
		data, err := c.load(file)
		var all []any
		if err == nil {
			all, err = decodeAll(data)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s", file, Why(err))
		}
		add(name, all)
	}
	add("ARGS", map[string]any{"named": named, "positional": []any{}})
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

// A jqRun is its inputs, which are read when the first is asked for.
type jqRun struct {
	c      *Call
	f      *flags
	indent string
	inputs gojq.Iter // nil before they are read
	code   int       // of reading them
	last   any       // the last result, errStop if there is none
}

// Next implements gojq.Iter; an error comes as a value.
func (j *jqRun) Next() (any, bool) {
	if j.inputs != nil {
		return j.inputs.Next()
	}
	data, code := j.c.slurpAll(j.f.args)
	j.code = code
	switch {
	case j.f.has("R") && j.f.has("s"):
		j.inputs = gojq.NewIter(string(data))
	case j.f.has("R"):
		j.inputs = gojq.NewIter(splitLines(data)...)
	case j.f.has("s"):
		all, err := decodeAll(data)
		if err != nil {
			return err, true
		}
		j.inputs = gojq.NewIter(all)
	default:
		j.inputs = newJSONIter(data)
	}
	return j.inputs.Next()
}

func (j *jqRun) run(code *gojq.Code, vars []any) int {
	status := 0
	for {
		var v any
		if !j.f.has("n") {
			var ok bool
			if v, ok = j.Next(); !ok {
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
					if halted.Value() != nil {
						j.c.errorf("%v", halted)
					}
					return halted.ExitCode()
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
	case j.code != 0:
		return 2
	case j.f.has("e") && j.last == errStop:
		return 4
	case j.f.has("e") && (j.last == nil || j.last == false):
		return 1
	}
	return 0
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
