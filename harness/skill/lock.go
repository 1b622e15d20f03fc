package skill

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// LockName is the usual name of the file that a lock is kept in.
const LockName = "skills.lock"

// lockHead is the first line of a lock file. Another version is refused.
const lockHead = "# skills.lock 1"

// A Lock holds skills to what they were when somebody looked at them: name to
// digest. As a file it is a line "sha256:...  name" for each, by name.
type Lock map[string]string

// Pin makes a lock of the skills as they are.
func Pin(skills []Skill) Lock {
	l := Lock{}
	for _, s := range skills {
		l[s.Name] = s.Digest
	}
	return l
}

// Verify returns the skills that are as the lock says. Every other one, and
// every one that the lock names and is not there, is a problem.
func (l Lock) Verify(skills []Skill) ([]Skill, []Problem) {
	var good []Skill
	var problems []Problem
	there := map[string]bool{}
	for _, s := range skills {
		there[s.Name] = true
		switch pinned, ok := l[s.Name]; {
		case !ok:
			problems = append(problems, Problem{s.Dir, fmt.Sprintf("skill %q is not in the lock; it is not mounted", s.Name)})
		case pinned != s.Digest:
			problems = append(problems, Problem{s.Dir, fmt.Sprintf("skill %q has changed: it is %s, the lock has %s; it is not mounted", s.Name, s.Digest, pinned)})
		default:
			good = append(good, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if !there[name] {
			problems = append(problems, Problem{LockName, fmt.Sprintf("skill %q is locked and not there", name)})
		}
	}
	return good, problems
}

// String is the lock as a file.
func (l Lock) String() string {
	var b strings.Builder
	b.WriteString(lockHead + "\n")
	for _, name := range slices.Sorted(maps.Keys(l)) {
		b.WriteString(l[name] + "  " + name + "\n")
	}
	return b.String()
}

var lockLine = regexp.MustCompile(`^(sha256:[0-9a-f]{64})  (\S(?:.*\S)?)$`)

// ParseLock reads a lock file. A line that is not understood fails it: a lock
// that holds less than it seems to is worse than none.
func ParseLock(text string) (Lock, error) {
	head, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(head, "\r") != lockHead {
		return nil, errors.New(`line 1: want "` + lockHead + `"`)
	}
	l, n := Lock{}, 1
	for line := range strings.Lines(rest) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := lockLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d: want a digest, two blanks and a name", n)
		}
		if _, ok := l[m[2]]; ok {
			return nil, fmt.Errorf("line %d: %q is there twice", n, m[2])
		}
		l[m[2]] = m[1]
	}
	return l, nil
}
