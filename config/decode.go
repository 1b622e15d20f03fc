package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decode puts a node into v and notes every problem below it. A null changes
// nothing. It panics for a type that no setting can have.
func (s *Settings) decode(n ast.Node, v reflect.Value, path string) {
	if _, ok := s.at[path]; !ok {
		start := n.GetToken()
		if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
			start = m.Values[0].Key.GetToken() // the node's own token is the first colon
		}
		s.at[path] = s.position(start)
	}
	if n.Type() == ast.NullType {
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		s.decode(n, v.Elem(), path)
		return
	}
	if text, ok := scalar(n); ok {
		s.decodeScalar(n, text, v, path)
		return
	}
	switch n := n.(type) {
	case *ast.SequenceNode:
		s.decodeList(n, v, path)
	case *ast.MappingNode, *ast.MappingValueNode:
		s.decodeMapping(n, v, path)
	default:
		s.Refuse(path, "an anchor, alias, merge or tag", "plain YAML")
	}
}

func (s *Settings) decodeList(n *ast.SequenceNode, v reflect.Value, path string) {
	if v.Kind() != reflect.Slice {
		s.Refuse(path, "a list", kind(v.Type()))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Values), len(n.Values))
	for i, x := range n.Values {
		s.decode(x, list.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(list)
}

func (s *Settings) decodeMapping(n ast.Node, v reflect.Value, path string) {
	if v.Kind() != reflect.Struct && v.Kind() != reflect.Map {
		s.Refuse(path, "a mapping", kind(v.Type()))
		return
	}
	if v.Kind() == reflect.Map && v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	values, _ := pairs(n)
	for _, kv := range values {
		name := keyText(kv.Key)
		key := path + "." + name
		s.at[key] = s.position(kv.Key.GetToken())
		if v.Kind() == reflect.Map {
			elem := reflect.New(v.Type().Elem()).Elem()
			s.decode(kv.Value, elem, key)
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), elem)
			continue
		}
		known := fields(v.Type())
		if f, ok := find(known, name); ok {
			s.decode(kv.Value, v.FieldByIndex(f.index), key)
			continue
		}
		names := make([]string, len(known))
		for i, f := range known {
			names[i] = f.name
		}
		s.Refuse(key, "an unknown key", oneOf(names))
	}
}

// scalar returns the text of a scalar as written, quotes and folding resolved.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (s *Settings) decodeScalar(n ast.Node, written string, v reflect.Value, path string) {
	text, err := expand(written, func(name string) string {
		value := s.read(name)
		if value != "" && secretName(name) {
			s.hide(value)
		}
		return value
	})
	if err != nil {
		s.Refuse(path, err.Error(), kind(v.Type()))
		return
	}
	if secretKey.MatchString(path) {
		s.hide(text)
		s.hide(text[strings.LastIndexByte(text, ' ')+1:]) // behind "Bearer"
	}
	if v.Kind() == reflect.Slice && !isText(v.Type()) { // a list of one
		list := reflect.MakeSlice(v.Type(), 1, 1)
		s.set(n, written, text, list.Index(0), path)
		v.Set(list)
		return
	}
	s.set(n, written, text, v, path)
}

// set parses text into v. A problem shows what is written, not what it expands to.
func (s *Settings) set(n ast.Node, written, text string, v reflect.Value, path string) {
	want := kind(v.Type())
	var err error
	switch {
	case isText(v.Type()):
		if err = v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil && written == text {
			_, want, _ = strings.Cut(": "+err.Error(), ": want ") // what was found is said already
			want = cmp.Or(want, err.Error())
		}
	case v.Type() == durationType:
		var d time.Duration
		d, err = time.ParseDuration(text)
		v.SetInt(int64(d))
	default:
		err = setBasic(n, text, v)
	}
	if err != nil {
		s.Refuse(path, quote(written), want)
	}
}

func setBasic(n ast.Node, text string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if n.Type() == ast.BoolType {
			return strconv.ErrSyntax // an unquoted true where text is wanted is a mistake
		}
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return strconv.ErrSyntax
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f-f != 0 { // neither infinite nor not a number
			return strconv.ErrSyntax
		}
		v.SetFloat(f)
	case reflect.Struct, reflect.Map, reflect.Slice:
		return strconv.ErrSyntax
	default:
		panic("config: a setting cannot be a " + v.Type().String())
	}
	return nil
}

func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }

// kind says in words what a type accepts.
func kind(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration such as 90s or 1h"
	case isText(t):
		return "a " + strings.ToLower(t.Name())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	}
	return "text"
}

// quote shows the beginning of what somebody wrote.
func quote(text string) string {
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60]) + "..."
	}
	return strconv.Quote(text)
}

// A field is a key of a mapping that a struct accepts.
type field struct {
	name  string
	doc   string
	index []int
	typ   reflect.Type
}

// fields lists the keys of a struct in its order; those of an embedded struct
// are keys of the struct itself.
func fields(t reflect.Type) []field {
	var list []field
	for f := range t.Fields() {
		if f.Anonymous {
			for _, inner := range fields(f.Type) {
				inner.index = append([]int{f.Index[0]}, inner.index...)
				list = append(list, inner)
			}
		} else if f.IsExported() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			list = append(list, field{name: name, doc: f.Tag.Get("doc"), index: f.Index, typ: f.Type})
		}
	}
	return list
}

func find(list []field, name string) (field, bool) {
	for _, f := range list {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}
