package commands

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// expr evaluates its arguments, one token each.
func expr(c *Call) int {
	p := &exprRun{args: c.Args[1:]}
	v, err := p.level(0)
	if err == nil && len(p.args) > 0 {
		err = fmt.Errorf("syntax error: unexpected argument '%s'", p.args[0])
	}
	if err != nil {
		return c.usage("%v", err)
	}
	c.printf("%s\n", v)
	if v == "" || v == "0" {
		return 1
	}
	return 0
}

type exprRun struct {
	args  []string
	depth int
}

var exprLevels = [][]string{{"|"}, {"&"}, {"<", "<=", "=", "==", "!=", ">=", ">"}, {"+", "-"}, {"*", "/", "%"}, {":"}}

func (p *exprRun) level(n int) (string, error) {
	if n == len(exprLevels) {
		return p.primary()
	}
	left, err := p.level(n + 1)
	for err == nil && len(p.args) > 0 {
		op := p.args[0]
		found := false
		for _, o := range exprLevels[n] {
			found = found || o == op
		}
		if !found {
			break
		}
		p.args = p.args[1:]
		var right string
		if right, err = p.level(n + 1); err == nil {
			left, err = exprApply(op, left, right)
		}
	}
	return left, err
}

func (p *exprRun) primary() (string, error) {
	if len(p.args) == 0 {
		return "", errors.New("syntax error: missing argument")
	}
	arg := p.args[0]
	p.args = p.args[1:]
	take := func(n int) ([]string, error) {
		if len(p.args) < n {
			return nil, errors.New("syntax error: missing argument")
		}
		got := p.args[:n]
		p.args = p.args[n:]
		return got, nil
	}
	switch arg {
	case "(":
		if p.depth++; p.depth > maxNested {
			return "", errors.New("nested too deeply")
		}
		v, err := p.level(0)
		if err == nil && (len(p.args) == 0 || p.args[0] != ")") {
			err = errors.New("syntax error: expecting ')'")
		}
		if err == nil {
			p.args = p.args[1:]
		}
		p.depth--
		return v, err
	case "length":
		a, err := take(1)
		if err != nil {
			return "", err
		}
		return strconv.Itoa(utf8.RuneCountInString(a[0])), nil
	case "match":
		a, err := take(2)
		if err != nil {
			return "", err
		}
		return exprApply(":", a[0], a[1])
	case "index":
		a, err := take(2)
		if err != nil {
			return "", err
		}
		return strconv.Itoa(strings.IndexAny(a[0], a[1]) + 1), nil
	case "substr":
		a, err := take(3)
		if err != nil {
			return "", err
		}
		runes := []rune(a[0])
		from, err1 := strconv.Atoi(a[1])
		n, err2 := strconv.Atoi(a[2])
		if err1 != nil || err2 != nil || from < 1 || n < 1 || from > len(runes) {
			return "", nil
		}
		return string(runes[from-1 : min(len(runes), from-1+n)]), nil
	}
	return arg, nil
}

func exprApply(op, a, b string) (string, error) {
	truth := func(ok bool) (string, error) {
		if ok {
			return "1", nil
		}
		return "0", nil
	}
	no := func(s string) bool { return s == "" || s == "0" }
	switch op {
	case "|":
		switch {
		case !no(a):
			return a, nil
		case !no(b):
			return b, nil
		}
		return "0", nil
	case "&":
		if no(a) || no(b) {
			return "0", nil
		}
		return a, nil
	case ":":
		re, err := compile(`^\(`+b+`\)`, basic, false)
		if err != nil {
			return "", err
		}
		m := re.FindStringSubmatch(a)
		switch {
		case re.NumSubexp() > 1 && m == nil:
			return "", nil
		case re.NumSubexp() > 1:
			return m[2], nil
		case m == nil:
			return "0", nil
		}
		return strconv.Itoa(utf8.RuneCountInString(m[0])), nil
	}
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	by := strings.Compare(a, b)
	if errX == nil && errY == nil {
		by = compareFloats(float64(x), float64(y))
	}
	switch op {
	case "<":
		return truth(by < 0)
	case "<=":
		return truth(by <= 0)
	case "=", "==":
		return truth(by == 0)
	case "!=":
		return truth(by != 0)
	case ">=":
		return truth(by >= 0)
	case ">":
		return truth(by > 0)
	}
	if errX != nil || errY != nil {
		return "", errors.New("non-integer argument")
	}
	if y == 0 && (op == "/" || op == "%") {
		return "", errors.New("division by zero")
	}
	var v int64
	switch op {
	case "+":
		v = x + y
	case "-":
		v = x - y
	case "*":
		v = x * y
	case "/":
		v = x / y
	case "%":
		v = x % y
	}
	return strconv.FormatInt(v, 10), nil
}
