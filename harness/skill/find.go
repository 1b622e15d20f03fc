package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Workspace is where skills lie in a workspace.
const Workspace = ".agents/skills"

// maxDirs bounds the folders that are looked into.
const maxDirs = 2000

// packages are folders that are not searched, beside those of version control.
var packages = regexp.MustCompile(`^(node_modules|bower_components|vendor|site-packages|__pycache__|\.?venv|\.tox)$`)

// LoadAll reads the skills in the folders below root, at most six deep. Nothing
// is searched below a skill. Of two with one name the one nearer to root is
// taken, then the first by path. A root that does not exist holds no skills.
//
// A strict load fails if any skill does, with every [Problem]. A lenient one
// leaves out what cannot be loaded, says so in the problems, and fails only if
// root cannot be read.
func LoadAll(fsys fs.FS, root string, mode Mode) ([]Skill, []Problem, error) {
	dirs, problems, err := find(fsys, root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("skills in %s: %w", root, err)
	}
	var skills []Skill
	var refused []error
	if mode == Strict {
		for _, p := range problems {
			refused = append(refused, p)
		}
		problems = nil
	}
	for _, dir := range dirs {
		s, noted, err := Load(fsys, dir, mode)
		problems = append(problems, noted...)
		switch {
		case err == nil:
			skills = append(skills, s)
		case mode == Strict:
			refused = append(refused, err)
		default:
			problems = append(problems, Problem{dir, "left out: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
		}
	}
	skills, twice := Merge(skills)
	if mode == Strict {
		for _, p := range twice {
			refused = append(refused, p)
		}
		twice = nil
	}
	if len(refused) > 0 {
		return nil, problems, errors.Join(refused...)
	}
	return skills, append(problems, twice...), nil
}

// Merge puts sets of skills together, those that go first first. Of two with
// one name the first stays.
func Merge(sets ...[]Skill) ([]Skill, []Problem) {
	var all []Skill
	var problems []Problem
	first := map[string]string{}
	for _, set := range sets {
		for _, s := range set {
			if dir, ok := first[s.Name]; ok {
				problems = append(problems, Problem{s.Dir, fmt.Sprintf("left out: %s is named %q too", dir, s.Name)})
				continue
			}
			first[s.Name] = s.Dir
			all = append(all, s)
		}
	}
	return all, problems
}

// Check says everything that is wrong with the skills below root by the strict
// rules, nothing if they are good.
func Check(fsys fs.FS, root string) []Problem {
	skills, problems, err := LoadAll(fsys, root, Strict)
	if err == nil && len(skills) == 0 {
		return []Problem{{root, "there is no skill"}}
	}
	return append(flatten(err), problems...)
}

// flatten lists the problems in an error.
func flatten(err error) []Problem {
	if err == nil {
		return nil
	}
	var list []Problem
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			list = append(list, flatten(e)...)
		}
		return list
	}
	var p Problem
	if !errors.As(err, &p) {
		p = Problem{".", err.Error()}
	}
	return []Problem{p}
}

// find lists the folders with skills, nearest first, then by path.
func find(fsys fs.FS, root string) (dirs []string, problems []Problem, err error) {
	if info, err := fs.Lstat(fsys, root); err != nil {
		return nil, nil, err
	} else if !info.IsDir() {
		return nil, nil, errors.New("not a folder")
	}
	level, seen := []string{root}, 0
	for depth := 0; len(level) > 0; depth++ {
		if depth > maxDepth {
			return dirs, append(problems, Problem{level[0], "not searched: it lies too deep"}), nil
		}
		var next []string
		for _, dir := range level {
			if seen++; seen > maxDirs {
				return dirs, append(problems, Problem{dir, fmt.Sprintf("not searched: there are more than %d folders", maxDirs)}), nil
			}
			entries, err := fs.ReadDir(fsys, dir)
			switch {
			case err != nil && dir == root:
				return nil, nil, err
			case err != nil:
				problems = append(problems, Problem{dir, "cannot be read: " + reason(err)})
				continue
			}
			sub, linked := look(dir, entries)
			if sub == nil {
				dirs = append(dirs, dir)
				continue
			}
			next, problems = append(next, sub...), append(problems, linked...)
		}
		level = next
	}
	return dirs, problems, nil
}

// look returns the folders to search below dir, nil if dir is a skill.
func look(dir string, entries []fs.DirEntry) (sub []string, problems []Problem) {
	sub = []string{}
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		switch {
		case (e.Name() == "SKILL.md" || e.Name() == "skill.md") && !e.IsDir():
			return nil, nil
		case e.Type()&fs.ModeSymlink != 0:
			problems = append(problems, Problem{at, "is a link; links are not followed"})
		case e.IsDir() && !vcs.MatchString(e.Name()) && !packages.MatchString(e.Name()):
			sub = append(sub, at)
		}
	}
	return sub, problems
}
