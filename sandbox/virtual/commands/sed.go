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

func sed(c *Call) int {
	f, ok := c.flags("n|quiet|silent e|expression: f|file: E|r|regexp-extended i|in-place? s|separate u z b posix debug")
	if !ok {
		return 2
	}
	script := strings.Join(f.vals["e"], "\n")
	for _, file := range f.vals["f"] {
		r, err := c.open(file)
		var data []byte
		if err == nil {
			data, err = slurp(r)
		}
		if err != nil {
			return c.usage("%s: %s", file, why(err))
		}
		script += "\n" + string(data)
	}
	if !f.has("e") && !f.has("f") {
		if len(f.args) == 0 {
			return c.usage("no script")
		}
		script, f.args = f.args[0], f.args[1:]
	}
	if f.has("z") {
		return c.usage("-z is not supported")
	}
	if err := CheckSource(script); err != nil {
		return c.usage("%v", err)
	}
	p := &sedParser{src: script, extended: f.has("E")}
	cmds, err := p.commands()
	if err != nil {
		return c.usage("%v", err)
	}
	if !f.has("i") && !f.has("s") {
		s := newSed(c, cmds, f.has("n"))
		code := 0
		if len(f.args) == 0 {
			f.args = []string{"-"}
		}
		for _, name := range f.args {
			r, err := c.open(name)
			if err != nil {
				c.errorf("can't read %s: %s", name, why(err))
				code = 2
				continue
			}
			s.inputs = append(s.inputs, r)
			s.names = append(s.names, name)
		}
		s.out = c.out
		return max(s.run(), code)
	}
	return c.all(f.args, 1, func(name string) error { return c.sedFile(f, cmds, name) })
}

// sedFile edits one file in place, or prints it on its own.
func (c *Call) sedFile(f *flags, cmds []*sedCommand, name string) error {
	data, err := c.FS.ReadFile(c.abs(name))
	if err != nil {
		return err
	}
	s := newSed(c, cmds, f.has("n"))
	s.inputs, s.names = []io.Reader{bytes.NewReader(data)}, []string{name}
	if !f.has("i") {
		s.out = c.out
		s.run()
		return s.err
	}
	var out bytes.Buffer
	s.out = bufio.NewWriter(&out)
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
	labels map[string]sedPlace
	quiet  bool
	out    *bufio.Writer
	inputs []io.Reader
	names  []string
	br     *bufio.Reader

	space, hold string
	number      int
	ended       bool // the present line had no newline
	next        *sedLine
	replaced    bool     // for t
	after       []string // printed at the end of the cycle
	lastRe      *regexp.Regexp
	files       map[string]io.Writer
	quit        bool
	code        int
	steps       int
	err         error
}

type sedLine struct {
	text string
	nl   bool
}

// A sedPlace is a label's: the command lists that hold it, and where.
type sedPlace []int

func newSed(c *Call, cmds []*sedCommand, quiet bool) *sedRun {
	s := &sedRun{c: c, cmds: cmds, quiet: quiet, labels: map[string]sedPlace{}, files: map[string]io.Writer{}}
	var index func(cmds []*sedCommand, at sedPlace)
	index = func(cmds []*sedCommand, at sedPlace) {
		for i, cmd := range cmds {
			here := append(append(sedPlace{}, at...), i)
			cmd.active = false
			if cmd.verb == ':' {
				s.labels[cmd.text] = here
			}
			index(cmd.block, here)
		}
	}
	index(cmds, nil)
	return s
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
		text, err := readLine(s.br)
		if err != nil && !errors.Is(err, io.EOF) {
			s.fail(err)
			return nil
		}
		if err == nil {
			return &sedLine{text, true}
		}
		s.br = nil
		if text != "" {
			return &sedLine{text, len(s.inputs) > 0}
		}
	}
}

// readLine reads a line without its newline, of at most maxInput bytes.
func readLine(br *bufio.Reader) (string, error) {
	var long []byte
	for {
		part, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) && len(long) < maxInput {
			long = append(long, part...)
			continue
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errInput
		}
		return strings.TrimSuffix(string(append(long, part...)), "\n"), err
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

func (s *sedRun) run() int {
	s.next = s.read()
	restart := false
	for !s.quit {
		if !restart && !s.advance(false) {
			break
		}
		s.replaced = false
		restart = s.cycle()
	}
	if s.err != nil && s.c.ctx.Err() == nil {
		s.c.errorf("%s", why(s.err))
	}
	return s.code
}

// A sedFlow says how to go on after a command.
type sedFlow int

const (
	flowNext    sedFlow = iota
	flowEnd             // of the cycle, printing the pattern space
	flowDelete          // of the cycle, printing nothing
	flowRestart         // D: again without reading
	flowBranch          // to the label in jump
)

// cycle runs the script once; it reports whether to run it again on what is left.
func (s *sedRun) cycle() (restart bool) {
	var start sedPlace
	for {
		flow, jump := s.list(s.cmds, start)
		if flow == flowBranch {
			if place, ok := s.labels[jump]; ok {
				start = place
				continue
			}
			flow = flowEnd
			if jump != "" {
				s.fail(fmt.Errorf("can't find label for jump to '%s'", jump))
			}
		}
		if (flow == flowNext || flow == flowEnd) && !s.quiet && s.err == nil {
			s.print(s.space)
		}
		for _, text := range s.after {
			_, _ = s.out.WriteString(text)
		}
		s.after = nil
		return flow == flowRestart
	}
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

// list runs commands from a place within them.
func (s *sedRun) list(cmds []*sedCommand, from sedPlace) (sedFlow, string) {
	for i := range cmds {
		if len(from) > 0 && i < from[0] {
			continue
		}
		if s.steps++; (s.steps%256 == 0 || len(s.space) > 64<<10) && s.c.ctx.Err() != nil {
			s.fail(s.c.ctx.Err())
		}
		if s.err != nil {
			return flowDelete, ""
		}
		cmd := cmds[i]
		var flow sedFlow
		var jump string
		if len(from) > 1 && i == from[0] { // into a block, whatever its addresses
			flow, jump = s.list(cmd.block, from[1:])
		} else if s.selects(cmd) {
			flow, jump = s.do(cmd)
		}
		from = nil
		if flow != flowNext {
			return flow, jump
		}
	}
	return flowNext, ""
}

// selects decides by the addresses.
func (s *sedRun) selects(cmd *sedCommand) bool {
	return s.inRange(cmd) != cmd.negate
}

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

func (s *sedRun) do(cmd *sedCommand) (sedFlow, string) {
	if len(s.space)+len(s.hold) > maxInput {
		s.fail(errInput)
		return flowDelete, ""
	}
	switch cmd.verb {
	case '{':
		return s.list(cmd.block, nil)
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
		return flowDelete, ""
	case 'd':
		return flowDelete, ""
	case 'D':
		_, rest, more := strings.Cut(s.space, "\n")
		if !more {
			return flowDelete, ""
		}
		s.space = rest
		return flowRestart, ""
	case 'p':
		s.print(s.space)
	case 'P':
		first, _, _ := strings.Cut(s.space, "\n")
		fmt.Fprintf(s.out, "%s\n", first)
	case 'n':
		if s.next == nil {
			s.quit = true
			return flowEnd, ""
		}
		if !s.quiet {
			s.print(s.space)
		}
		s.advance(false)
	case 'N':
		if s.next == nil {
			s.quit = true
			return flowEnd, ""
		}
		s.advance(true)
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
			return flowDelete, ""
		}
		return flowEnd, ""
	case 'b':
		return s.branch(cmd)
	case 't', 'T':
		if s.replaced == (cmd.verb == 't') {
			s.replaced = false
			return s.branch(cmd)
		}
		s.replaced = false
	default:
		s.edit(cmd)
	}
	return flowNext, ""
}

func (s *sedRun) branch(cmd *sedCommand) (sedFlow, string) {
	if cmd.text == "" {
		return flowEnd, ""
	}
	return flowBranch, cmd.text
}

// edit runs the commands that change the space or files.
func (s *sedRun) edit(cmd *sedCommand) {
	switch cmd.verb {
	case 's':
		s.substitute(cmd)
	case 'y':
		s.space = strings.Map(func(r rune) rune {
			if to, ok := cmd.table[r]; ok {
				return to
			}
			return r
		}, s.space)
	case 'l':
		fmt.Fprintf(s.out, "%s$\n", strings.Trim(strconv.QuoteToASCII(s.space), `"`))
	case 'F':
		fmt.Fprintf(s.out, "%s\n", s.names[max(0, len(s.names)-len(s.inputs)-1)])
	case 'r':
		if r, err := s.c.open(cmd.text); err == nil {
			if data, err := slurp(r); err == nil && len(data) > 0 {
				s.after = append(s.after, string(data))
			}
		}
	case 'w':
		s.toFile(cmd.text)
	}
}

func (s *sedRun) toFile(name string) {
	w, ok := s.files[name]
	if !ok {
		var err error
		if w, err = s.c.create(name, false); err != nil {
			s.fail(err)
			return
		}
		s.files[name] = w
	}
	if _, err := io.WriteString(w, s.space+"\n"); err != nil {
		s.fail(err)
	}
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
	if cmd.file != "" {
		s.toFile(cmd.file)
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
