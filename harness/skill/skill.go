// Package skill reads skills from folders in the Agent Skills layout: a folder
// with a SKILL.md, whose frontmatter says what the skill is for and whose body
// is read by a model when it needs it, and files that are read one at a time.
//
// What is offered is what was looked at: the digest of a skill covers all its
// files, a [Lock] holds it to that digest, and a file that has changed since it
// was loaded is not read. File systems are asked for plain files and folders
// only; links are not followed. To be safe from links that appear while a
// folder is read, use the FS of an os.Root.
package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Mode says how much is forgiven.
type Mode int

// Strict is for skills of our own: whatever breaks a rule is an error. Lenient
// is for those of others: what can be worked around is reported and the skill
// is loaded.
const (
	Strict Mode = iota
	Lenient
)

// Limits of a skill. Sizes are in bytes, of the rest in runes or as named.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
	maxHeadBytes     = 16 << 10
	maxSkillBytes    = 100 << 10 // of SKILL.md: its body must fit a tool's result
	longBytes        = 20 << 10  // about 5000 tokens, above which a body is called long
	longLines        = 500
	maxFileBytes     = 1 << 20
	maxDirBytes      = 5 << 20
	maxForeignBytes  = 32 << 20 // of a folder that is loaded leniently
	maxEntries       = 2000
	maxDepth         = 6  // of folders, below a skill and above it
	maxNoted         = 20 // problems of one skill that are told
)

// A Skill is one folder with a SKILL.md.
type Skill struct {
	Name          string
	Description   string
	License       string
	Compatibility string
	Metadata      map[string]string
	AllowedTools  []string // nil if the skill does not say; empty if it allows none
	Body          string   // Markdown, as it stands in the file, without the blanks around it
	Digest        string   // "sha256:..." of all files
	Dir           string   // in the file system it was loaded from

	fsys  fs.FS
	files []file // by path, SKILL.md included
}

// A Problem is a rule that something breaks.
type Problem struct {
	Path string // slash-separated, in the file system that was read
	Text string
}

func (p Problem) Error() string { return p.Path + ": " + p.Text }

// Load reads the skill in the folder dir. Problems are what a lenient load has
// worked around, and advice. The error joins every [Problem] that stands in the
// way; the skill is then of no use.
func Load(fsys fs.FS, dir string, mode Mode) (Skill, []Problem, error) {
	l := &loader{fsys: fsys, mode: mode, skill: Skill{Dir: dir, fsys: fsys}, mains: map[string][]byte{}}
	if !fs.ValidPath(dir) {
		return Skill{}, nil, Problem{dir, "not a path of a folder"}
	}
	l.load()
	if n := len(l.noted); n > maxNoted {
		l.noted = append(l.noted[:maxNoted:maxNoted], Problem{dir, fmt.Sprintf("and %d problems more", n-maxNoted)})
	}
	if len(l.refused) > 0 {
		return Skill{}, l.noted, errors.Join(l.refused...)
	}
	return l.skill, l.noted, nil
}

// A loader collects what is wrong with one skill, so that its author learns of
// everything at once.
type loader struct {
	fsys    fs.FS
	mode    Mode
	skill   Skill
	refused []error
	noted   []Problem
	entries int
	bytes   int64
	mains   map[string][]byte // what stands in SKILL.md or skill.md
}

func (l *loader) refuse(path, text string) { l.refused = append(l.refused, Problem{path, text}) }

func (l *loader) note(path, text string) { l.noted = append(l.noted, Problem{path, text}) }

// object refuses in strict mode and notes in lenient mode.
func (l *loader) object(path, text string) {
	if l.mode == Strict {
		l.refuse(path, text)
	} else {
		l.note(path, text)
	}
}

func (l *loader) load() {
	s := &l.skill
	info, err := fs.Lstat(l.fsys, s.Dir)
	switch {
	case err != nil:
		l.refuse(s.Dir, "cannot be read: "+reason(err))
		return
	case !info.IsDir():
		l.refuse(s.Dir, "not a folder")
		return
	}
	if !l.walk(s.Dir, 0) {
		return
	}
	if l.mode == Strict && l.bytes > maxDirBytes {
		l.refuse(s.Dir, fmt.Sprintf("holds %d bytes, at most %d are allowed", l.bytes, maxDirBytes))
	}
	main := mainFile(s.files)
	if main == "" {
		l.refuse(s.Dir, "there is no SKILL.md")
		return
	}
	s.Digest = digestFiles(s.files)
	at := path.Join(s.Dir, main)
	if main != "SKILL.md" {
		l.note(at, "is better named SKILL.md")
	}
	if n := len(l.mains[main]); n > maxSkillBytes {
		l.refuse(at, fmt.Sprintf("has more than %d bytes", maxSkillBytes))
		return
	}
	l.parse(at, l.mains[main])
}

// mainFile picks the file that makes a folder a skill, "" if there is none.
func mainFile(files []file) string {
	for _, name := range []string{"SKILL.md", "skill.md"} {
		if slices.ContainsFunc(files, func(f file) bool { return f.path == name }) {
			return name
		}
	}
	return ""
}

// reason is an error without the path, which a problem names itself.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return strings.TrimSpace(p.Err.Error())
	}
	return err.Error()
}
