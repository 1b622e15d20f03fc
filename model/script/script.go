// Package script is the text form of what a make-believe model says. It knows
// nothing of providers, so that a provider and a server can play one script.
//
// A script has one answer a line, of blocks with "and" for answers of several
// things:
//
//	when "deploy"                  # begins a scene: the lines for a user text that matches
//	think: they want the log
//	and say: I will look.
//	and call: bash {"command":"tail log"}
//	say: it says {result}
//
//	when ""                        # any other text
//	fault: limited 1s              # once, then the next line
//	wait                           # until released, then the next line
//	say: half of a
//	and fault: truncated           # once: the answer breaks off
//	say: you said {user}
//
// Lines before the first "when" are for the conversation from its beginning.
package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Script is a parsed text. It does not change.
type Script struct {
	scenes []scene
}

type scene struct {
	when  *regexp.Regexp // nil: from the beginning of the conversation
	lines []Line
}

// A Line is one answer, or a fault, or both: an answer that breaks off.
type Line struct {
	Think string
	Say   string
	Calls []Call
	Fault string        // name of a model.Fault in one word, "" for none
	After time.Duration // of a fault: Retry-After
	Wait  bool
}

// A Call is one call of a tool.
type Call struct {
	Name string
	Args string // JSON, or what is to pass for it
}

// silent says whether the line has nothing to answer with.
func (l Line) silent() bool { return l.Say == "" && l.Think == "" && l.Calls == nil && l.Fault == "" }

// once says whether the line is played once a process and leaves no answer in
// the conversation. A wait joined to an answer is no line of its own.
func (l Line) once() bool { return l.Fault != "" || l.Wait && l.silent() }

// faults are the names that may follow "fault:".
const faults = " transient limited truncated stalled garbled overflow denied missing invalid "

// Parse reads a script. Errors name the line.
func Parse(text string) (*Script, error) {
	s := &Script{scenes: []scene{{}}}
	for i, raw := range strings.Split(text, "\n") {
		line := strings.TrimSpace(raw)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := s.add(line); err != nil {
			return nil, fmt.Errorf("script line %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *Script) add(line string) error {
	if pattern, ok := strings.CutPrefix(line, "when "); ok {
		p, err := strconv.QuotedPrefix(strings.TrimSpace(pattern))
		if err != nil {
			return fmt.Errorf("want when \"pattern\"")
		}
		p, _ = strconv.Unquote(p)
		re, err := regexp.Compile(p)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		s.scenes = append(s.scenes, scene{when: re})
		return nil
	}
	lines := &s.scenes[len(s.scenes)-1].lines
	more, joined := strings.CutPrefix(line, "and ")
	if !joined {
		*lines = append(*lines, Line{})
	} else if len(*lines) == 0 {
		return fmt.Errorf("nothing before \"and\"")
	}
	return (*lines)[len(*lines)-1].set(more)
}

func (l *Line) set(text string) error {
	key, value, _ := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	switch key {
	case "say":
		l.Say = join(l.Say, value)
	case "think":
		l.Think = join(l.Think, value)
	case "call":
		name, args, _ := strings.Cut(value, " ")
		if name == "" {
			return fmt.Errorf("want call: NAME ARGUMENTS")
		}
		l.Calls = append(l.Calls, Call{Name: name, Args: strings.TrimSpace(args)})
	case "fault":
		name, after, _ := strings.Cut(value, " ")
		if name == "" || !strings.Contains(faults, " "+name+" ") {
			return fmt.Errorf("fault %q: want one of%s", name, strings.TrimRight(faults, " "))
		}
		l.Fault = name
		if after != "" {
			d, err := time.ParseDuration(after)
			if err != nil {
				return fmt.Errorf("fault %s: %w", name, err)
			}
			l.After = d
		}
	case "wait":
		l.Wait = true
	default:
		return fmt.Errorf("%q: want when, say, think, call, fault or wait", key)
	}
	return nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// A Message is a message of the conversation as far as scripts look at it.
type Message struct {
	Role string // "user", "assistant" or "results"
	Text string
}

// find chooses the answer by the conversation alone, so that a script goes on
// where it was after a restart: the scene is that of the latest user text that
// any scene matches, the line the number of answers since. The lines before it
// that are played once, such as faults, come as well. It is not ok when the
// script has no line left.
func (s *Script) find(talk []Message) (lines []Line, at string, ok bool) {
	scene, answers := 0, 0
	for i := len(talk) - 1; i >= 0 && scene == 0; i-- {
		switch talk[i].Role {
		case "assistant":
			answers++
		case "user":
			if text, ok := words(talk[i].Text); ok {
				scene = s.match(text)
			}
		}
	}
	from := 0
	for i, l := range s.scenes[scene].lines {
		if l.once() {
			continue
		}
		if answers == 0 {
			return s.scenes[scene].lines[from : i+1], fmt.Sprintf("%d.%d", scene, from), true
		}
		answers--
		from = i + 1
	}
	rest := s.scenes[scene].lines[from:]
	return rest, fmt.Sprintf("%d.%d", scene, from), answers == 0 && len(rest) > 0
}

var (
	quote  = regexp.MustCompile(`(?s)^<heard[^>]*>\n(.*)\n</heard>$`)
	notice = regexp.MustCompile(`(?s)^<(notice|cited)[^>]*>.*</(notice|cited)>$`)
)

// words are what a person said, without the marks in which a harness hands it
// on. An announcement or a citation of the harness is nobody's words.
func words(text string) (string, bool) {
	if m := quote.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return text, !notice.MatchString(text)
}

// match is the number of the scene for a user text, 0 for none.
func (s *Script) match(text string) int {
	for i, c := range s.scenes {
		if c.when != nil && c.when.MatchString(text) {
			return i
		}
	}
	return 0
}

// filled is the line with {user} and {result} replaced by the latest text of
// each, in what is said.
func (l Line) filled(talk []Message) Line {
	var user, result string
	for _, m := range talk {
		switch m.Role {
		case "user":
			if text, ok := words(m.Text); ok {
				user = text
			}
		case "results":
			result = m.Text
		}
	}
	l.Say = strings.NewReplacer("{user}", user, "{result}", result).Replace(l.Say)
	return l
}

// Arguments are the arguments of the call: {} where the script gives none.
func (c Call) Arguments() json.RawMessage {
	if c.Args == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Args)
}
