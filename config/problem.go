package config

import "strings"

// A Problem is one setting that is wrong.
type Problem struct {
	At      string // position in the file, "gateway.yaml:3:7"; "" for a variable
	Setting string // "SLACK_SIGNING_SECRET", "agents.assistant.ladder[1].model"
	Found   string // never a secret's value
	Want    string
}

func (p Problem) String() string {
	text := p.Setting + ": found " + p.Found
	if p.At != "" {
		text = p.At + ": " + text
	}
	if p.Want != "" {
		text += "; want " + p.Want
	}
	return text
}

// Problems are the wrong settings of one start. The program ends with exit code 78.
type Problems []Problem

// Error prints one problem a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, x := range p {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}
