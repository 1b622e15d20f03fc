package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxFields bounds a form that is put to people one value at a time.
const maxFields = 10

// A field is one value of a form.
type field struct {
	name     string // the server's
	title    string // cleaned
	doc      string // cleaned
	kind     string // string, number, integer, boolean, array of strings
	format   string
	choices  []choice // nil for any value
	required bool
	checked  *jsonschema.Resolved // nil if that is left to the server
}

type choice struct{ value, title string }

// readForm reads the schema of a form: a flat object. Required fields come
// first, then by name.
func readForm(text json.RawMessage) ([]field, error) {
	var form struct {
		Type       string                    `json:"type"`
		Properties map[string]map[string]any `json:"properties"`
		Required   []string                  `json:"required"`
	}
	if err := json.Unmarshal(text, &form); err != nil || form.Type != "object" && form.Type != "" {
		return nil, errors.New("the form is not a flat object")
	}
	if len(form.Properties) > maxFields {
		return nil, fmt.Errorf("the form has more than %d fields", maxFields)
	}
	var fields []field
	for name, p := range form.Properties {
		f := field{name: name, title: line(name), required: slices.Contains(form.Required, name)}
		if err := f.read(p); err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b field) int {
		if a.required != b.required {
			return strings.Compare(strconv.FormatBool(b.required), strconv.FormatBool(a.required))
		}
		return strings.Compare(a.name, b.name)
	})
	return fields, nil
}

// line makes a server's words fit to stand beside ours: in one line, and not
// bold as the names are.
func line(text string) string {
	return describe(strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "*", ""), maxReason)
}

// read takes in what a field's schema says.
func (f *field) read(p map[string]any) error {
	text := func(key string) string { s, _ := p[key].(string); return s }
	if t := text("title"); t != "" {
		f.title = line(t)
	}
	f.doc, f.kind, f.format = line(text("description")), text("type"), text("format")
	switch f.kind {
	case "string":
		f.choices = choicesOf(p)
	case "number", "integer", "boolean":
	case "array":
		items, _ := p["items"].(map[string]any)
		if f.choices = choicesOf(items); f.choices == nil {
			return errors.New("the form has a list of anything")
		}
	default:
		return errors.New("the form has a field of another kind")
	}
	s, err := readSchema(p)
	if err != nil {
		return err
	}
	f.checked = s.checked
	return nil
}

// choicesOf reads the values that a schema allows, nil for any.
func choicesOf(p map[string]any) (out []choice) {
	values, _ := p["enum"].([]any)
	names, _ := p["enumNames"].([]any)
	for i, v := range values {
		if s, ok := v.(string); ok {
			c := choice{s, s}
			if i < len(names) {
				c.title = fmt.Sprint(names[i])
			}
			out = append(out, c)
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		some, _ := p[key].([]any)
		for _, v := range some {
			m, _ := v.(map[string]any)
			if s, ok := m["const"].(string); ok {
				c := choice{s, s}
				if t, ok := m["title"].(string); ok {
					c.title = t
				}
				out = append(out, c)
			}
		}
	}
	for i := range out {
		out[i].title = line(out[i].title)
	}
	return out
}

// prompt says what is wanted, for people.
func (f field) prompt() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", f.title)
	if f.doc != "" && f.doc != f.title {
		b.WriteString(": " + f.doc)
	}
	switch {
	case f.choices != nil:
		var titles []string
		for _, c := range f.choices {
			titles = append(titles, c.title)
		}
		one := "One of: "
		if f.kind == "array" {
			one = "Some of, with commas between: "
		}
		b.WriteString("\n" + one + describe(strings.Join(titles, ", "), maxDoc))
	case f.kind == "boolean":
		b.WriteString("\nyes or no")
	case f.kind != "string":
		b.WriteString("\na " + strings.Replace(f.kind, "integer", "whole number", 1))
	case f.format != "":
		b.WriteString("\nof the form " + describe(line(f.format), 32))
	}
	return b.String()
}

// parse makes the value of what somebody wrote. Errors are for people.
func (f field) parse(text string) (v any, err error) {
	switch f.kind {
	case "boolean":
		switch strings.ToLower(text) {
		case "yes", "y", "true":
			v = true
		case "no", "n", "false":
			v = false
		default:
			return nil, errors.New("want yes or no")
		}
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errors.New("want a whole number")
		}
		v = n
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errors.New("want a number")
		}
		v = n
	case "array":
		list := []any{}
		for part := range strings.SplitSeq(text, ",") {
			one, err := f.choose(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		v = list
	default:
		if v, err = f.word(text); err != nil {
			return nil, err
		}
	}
	if f.checked != nil {
		if err := f.checked.Validate(v); err != nil {
			return nil, errors.New("it is not within what the server takes")
		}
	}
	return v, nil
}

// word is a text: one of the choices, or one of the format.
func (f field) word(text string) (string, error) {
	if f.choices != nil {
		return f.choose(text)
	}
	var err error
	switch f.format {
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(text); err == nil {
			text = a.Address
		}
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && !u.IsAbs() {
			err = errors.New("not absolute")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return "", fmt.Errorf("want the form %s", f.format)
	}
	return text, nil
}

// choose finds a choice by its value or its title, in any case.
func (f field) choose(text string) (string, error) {
	for _, c := range f.choices {
		if strings.EqualFold(text, c.value) || strings.EqualFold(text, c.title) {
			return c.value, nil
		}
	}
	return "", errors.New("want one of those named")
}
