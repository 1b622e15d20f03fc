package commands

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func sed(c *Call, f *flags) int {
	script := strings.Join(f.vals["e"], "\n")
	if script != "" {
		script += "\n"
	}
	script, ok := c.program(f, script, f.has("e"))
	if !ok {
		return 2
	}
	p := &sedParser{src: script, extended: f.has("E")}
	cmds, err := p.commands()
	if err != nil {
		return c.usage("%v", err)
	}
	if f.has("i") {
		return c.all(f.args, func(name string) error { return c.sedFile(f, cmds, name) })
	}
	s := newSed(c, cmds, f.has("n"), c.out)
	code := 0
	if len(f.args) == 0 {
		f.args = []string{"-"}
	}
	for _, name := range f.args {
		r, err := c.open(name)
		if err != nil {
			c.errorf("can't read %s: %s", name, Why(err))
			code = 2
			continue
		}
		s.inputs = append(s.inputs, r)
	}
	if s.run(); s.err != nil && c.ctx.Err() == nil {
		c.errorf("%s", Why(s.err))
	}
	return max(s.code, code)
}

// sedFile edits one file in place.
func (c *Call) sedFile(f *flags, cmds []*sedCommand, name string) error {
	data, err := c.FS.ReadFile(c.abs(name))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	s := newSed(c, cmds, f.has("n"), bufio.NewWriter(&out))
	s.inputs = []io.Reader{bytes.NewReader(data)}
	s.run()
	_ = s.out.Flush() // a buffer does not fail
	if s.err != nil {
		return s.err
	}
	if suffix := f.str("i", ""); suffix != "" {
		if err := c.FS.WriteFile(c.abs(name)+suffix, data, 0o644); err != nil {
			return err
		}
	}
	return c.FS.WriteFile(c.abs(name), out.Bytes(), 0o644)
}

// A sedRun runs a script over its inputs.
type sedRun struct {
	c      *Call
	cmds   []*sedCommand
	quiet  bool
	out    *bufio.Writer
	inputs []io.Reader
	br     *bufio.Reader

	space, hold string
	number      int
	ended       bool // the present line had no newline
	next        *sedLine
	replaced    bool     // for t
	after       []string // printed at the end of the cycle
	lastRe      *regexp.Regexp
	quit        bool
	code        int
	steps       int
	err         error
}

type sedLine struct {
	text string
	nl   bool
}

func newSed(c *Call, cmds []*sedCommand, quiet bool, out *bufio.Writer) *sedRun {
	for _, cmd := range cmds {
		cmd.active = false
	}
	return &sedRun{c: c, cmds: cmds, quiet: quiet, out: out}
}

// read returns the next line of all inputs.
func (s *sedRun) read() *sedLine {
	for {
		if s.br == nil {
			if len(s.inputs) == 0 {
				return nil
			}
			s.br, s.inputs = bufio.NewReader(s.inputs[0]), s.inputs[1:]
		}
		text, nl, err := readLine(s.br)
		switch {
		case err == nil:
			return &sedLine{string(text), nl || len(s.inputs) > 0}
		case !errors.Is(err, io.EOF):
			s.fail(err)
			return nil
		}
		s.br = nil
	}
}

func (s *sedRun) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.quit, s.code = true, 4
}

// advance makes the next line the pattern space, or appends it.
func (s *sedRun) advance(appended bool) bool {
	if s.next == nil {
		return false
	}
	line := s.next
	s.next = s.read()
	s.number++
	s.ended = !line.nl
	if appended {
		s.space += "\n" + line.text
	} else {
		s.space = line.text
	}
	return true
}

func (s *sedRun) run() {
	s.next = s.read()
	restart := false
	for !s.quit && (restart || s.advance(false)) {
		s.replaced = false
		restart = s.cycle()
	}
}

// A sedFlow says how to go on after a command.
type sedFlow int

const (
	flowNext    sedFlow = iota
	flowBranch          // to where the command jumps
	flowEnd             // of the cycle, printing the pattern space
	flowDelete          // of the cycle, printing nothing
	flowRestart         // D: again without reading
)

// cycle runs the script once; it reports whether to run it again on what is left.
func (s *sedRun) cycle() (restart bool) {
	flow := flowNext
	for at := 0; at < len(s.cmds) && flow <= flowBranch; {
		cmd := s.cmds[at]
		at++
		if s.steps++; (s.steps%256 == 0 || len(s.space) > 64<<10) && s.c.ctx.Err() != nil {
			s.fail(s.c.ctx.Err())
		}
		switch selected := s.inRange(cmd) != cmd.negate; {
		case selected:
			flow = s.do(cmd)
		case cmd.verb == '{':
			flow = flowBranch // over the block
		default:
			flow = flowNext
		}
		if flow == flowBranch {
			at = cmd.jump
		}
		if s.err != nil {
			return false
		}
	}
	if flow <= flowEnd && !s.quiet {
		s.print(s.space)
	}
	for _, text := range s.after {
		_, _ = s.out.WriteString(text)
	}
	s.after = nil
	return flow == flowRestart
}

// print writes a line; only the input's last may lack its newline.
func (s *sedRun) print(text string) {
	_, err := s.out.WriteString(text)
	if !s.ended || s.next != nil {
		err = s.out.WriteByte('\n')
	}
	if err != nil {
		s.fail(err)
	}
}

// inRange decides by the addresses.
func (s *sedRun) inRange(cmd *sedCommand) bool {
	switch {
	case cmd.from == nil:
		return true
	case cmd.to == nil:
		return s.at(cmd.from)
	case cmd.active:
		switch {
		case cmd.until > 0:
			cmd.active = s.number < cmd.until
			return s.number <= cmd.until
		case s.at(cmd.to):
			cmd.active = false
		}
		return true
	case cmd.from.line == 0 && !cmd.from.pattern && !cmd.from.last && cmd.from.step == 0: // 0,/re/
		if s.number > 1 {
			return false
		}
		cmd.active = !s.at(cmd.to)
		return true
	case !s.at(cmd.from):
		return false
	}
	cmd.until = 0
	switch to := cmd.to; {
	case to.plus:
		cmd.until = s.number + to.line
	case !to.pattern && !to.last:
		cmd.until = max(to.line, s.number)
	}
	cmd.active = cmd.until == 0 && !(cmd.to.last && s.next == nil) || cmd.until > s.number
	return true
}

func (s *sedRun) at(a *sedAddress) bool {
	switch {
	case a.last:
		return s.next == nil
	case a.pattern:
		re := s.regex(a.re)
		return re != nil && re.MatchString(s.space)
	case a.step > 0:
		return s.number >= a.line && (s.number-a.line)%a.step == 0
	}
	return s.number == a.line
}

// regex remembers a pattern; nil stands for the last one.
func (s *sedRun) regex(re *regexp.Regexp) *regexp.Regexp {
	if re == nil {
		if re = s.lastRe; re == nil {
			s.fail(errors.New("no previous regular expression"))
		}
		return re
	}
	s.lastRe = re
	return re
}

// do runs a command on the pattern space.
func (s *sedRun) do(cmd *sedCommand) sedFlow {
	if len(s.space)+len(s.hold) > maxInput {
		s.fail(errInput)
		return flowDelete
	}
	switch cmd.verb {
	case '=':
		fmt.Fprintf(s.out, "%d\n", s.number)
	case 'a':
		s.after = append(s.after, cmd.text+"\n")
	case 'i':
		fmt.Fprintf(s.out, "%s\n", cmd.text)
	case 'c':
		if cmd.to == nil || cmd.negate || !cmd.active {
			fmt.Fprintf(s.out, "%s\n", cmd.text)
		}
		return flowDelete
	case 'd':
		return flowDelete
	case 'D':
		_, rest, more := strings.Cut(s.space, "\n")
		if !more {
			return flowDelete
		}
		s.space = rest
		return flowRestart
	case 'p':
		s.print(s.space)
	case 'P':
		first, _, _ := strings.Cut(s.space, "\n")
		fmt.Fprintf(s.out, "%s\n", first)
	case 'n', 'N':
		if s.next == nil {
			s.quit = true
			return flowEnd
		}
		if cmd.verb == 'n' && !s.quiet {
			s.print(s.space)
		}
		s.advance(cmd.verb == 'N')
	case 'g':
		s.space = s.hold
	case 'G':
		s.space += "\n" + s.hold
	case 'h':
		s.hold = s.space
	case 'H':
		s.hold += "\n" + s.space
	case 'x':
		s.space, s.hold = s.hold, s.space
	case 'z':
		s.space = ""
	case 'q', 'Q':
		s.quit = true
		s.code, _ = strconv.Atoi("0" + cmd.text)
		if cmd.verb == 'Q' {
			return flowDelete
		}
		return flowEnd
	case 'b':
		return flowBranch
	case 't', 'T':
		jump := s.replaced == (cmd.verb == 't')
		s.replaced = false
		if jump {
			return flowBranch
		}
	case 's':
		s.substitute(cmd)
	case 'y':
		s.space = cmd.table.Replace(s.space)
	case 'r':
		if data, err := s.c.load(cmd.text); err == nil { // a missing file is no fault
			s.after = append(s.after, string(data))
		}
	}
	return flowNext
}

func (s *sedRun) substitute(cmd *sedCommand) {
	re := s.regex(cmd.re)
	if re == nil {
		return
	}
	most := -1
	if !cmd.global {
		most = max(cmd.nth, 1)
	}
	matches := re.FindAllStringSubmatchIndex(s.space, most)
	if len(matches) < max(cmd.nth, 1) {
		return
	}
	matches = matches[max(cmd.nth, 1)-1:]
	var b strings.Builder
	at := 0
	for _, m := range matches {
		b.WriteString(s.space[at:m[0]])
		writePieces(&b, cmd.with, s.space, m)
		at = m[1]
		if b.Len() > maxInput {
			s.fail(errInput)
			return
		}
	}
	b.WriteString(s.space[at:])
	s.space = b.String()
	s.replaced = true
	if cmd.print {
		s.print(s.space)
	}
}

// writePieces writes a replacement with its changes of case.
func writePieces(b *strings.Builder, with []sedPiece, space string, match []int) {
	var run, once byte
	for _, p := range with {
		switch p.fold {
		case 'U', 'L':
			run = p.fold
			continue
		case 'E':
			run = 0
			continue
		case 'u', 'l':
			once = p.fold
			continue
		}
		text := p.text
		if p.group >= 0 && 2*p.group+1 < len(match) && match[2*p.group] >= 0 {
			text = space[match[2*p.group]:match[2*p.group+1]]
		}
		switch run {
		case 'U':
			text = strings.ToUpper(text)
		case 'L':
			text = strings.ToLower(text)
		}
		if once != 0 && text != "" {
			r, size := utf8.DecodeRuneInString(text)
			to := unicode.ToUpper(r)
			if once == 'l' {
				to = unicode.ToLower(r)
			}
			if r != utf8.RuneError {
				text = string(to) + text[size:]
			}
			once = 0
		}
		b.WriteString(text)
	}
}
