package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/skill"
)

// skillSettings are the section skills.
type skillSettings struct {
	Dir  string `yaml:"dir" doc:"The folder of the skills, relative to the settings file; skills if not set."`
	Lock string `yaml:"lock" doc:"The file that pins them, relative to the settings file; skills.lock if not set."`
}

// A shelf is the folder of skills and what of it may be mounted.
type shelf struct {
	dir, lock string // paths
	all       []skill.Skill
	pins      skill.Lock
	mounted   map[string]harness.Skill // as the lock has them
	odd       []skill.Problem          // worked around, or left out
	drift     []skill.Problem          // between the folder and the lock
}

// openShelf reads the folder and the lock. What cannot be loaded is left out and
// noted; no folder is no skills, no lock pins none.
func openShelf(s *config.Settings, f skillSettings) (*shelf, error) {
	sh := &shelf{dir: beside(s, f.Dir), lock: beside(s, f.Lock), pins: skill.Lock{}, mounted: map[string]harness.Skill{}}
	if b, err := os.ReadFile(sh.lock); err == nil {
		if sh.pins, err = skill.ParseLock(string(b)); err != nil {
			return nil, fmt.Errorf("%s: %w", sh.lock, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	root, err := os.OpenRoot(sh.dir)
	switch {
	case err == nil: // it stays open as long as the process: resources are read on demand
		if sh.all, sh.odd, err = skill.LoadAll(root.FS(), ".", skill.Lenient); err != nil {
			return nil, fmt.Errorf("%s: %w", sh.dir, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	good, drift := sh.pins.Verify(sh.all)
	for _, one := range good {
		sh.mounted[one.Name] = one.Mount()
	}
	sh.drift = drift
	return sh, nil
}

// beside is a path of the settings file, which may be relative to it.
func beside(s *config.Settings, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(s.Path()), path)
}

// find is a skill that an agent names. One that is not pinned is refused; one
// that has changed since is not mounted, which is warned of.
func (sh *shelf) find(s *config.Settings, at, name string) (m harness.Skill, ok bool) {
	m, ok = sh.mounted[name]
	switch {
	case ok:
	case !slices.ContainsFunc(sh.all, func(x skill.Skill) bool { return x.Name == name }):
		s.Refuse(at, fmt.Sprintf("%q, which is not in %s", name, sh.dir), "one of "+sh.names())
	case sh.pins[name] == "":
		s.Refuse(at, fmt.Sprintf("%q, which is not in %s", name, sh.lock), "a skill that somebody looked at: gateway skills lock")
	default:
		s.Warn(at, fmt.Sprintf("%q is not what %s pins, so it is not mounted; look at it, then: gateway skills lock", name, sh.lock))
	}
	return m, ok
}

func (sh *shelf) names() string {
	var names []string
	for _, one := range sh.all {
		names = append(names, one.Name)
	}
	if names == nil {
		return "none: the folder holds no skill that can be loaded"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// state says in a word or two what is with a skill.
func (sh *shelf) state(one skill.Skill) string {
	switch sh.pins[one.Name] {
	case one.Digest:
		return "locked"
	case "":
		return "not locked"
	}
	return "changed since it was locked: not mounted"
}

type skillsCmd struct {
	List  skillsListCmd  `cmd:"" help:"List the skills in the folder and what is with them."`
	Check skillsCheckCmd `cmd:"" help:"Check the skills by the strict rules and against the lock file."`
	Lock  skillsLockCmd  `cmd:"" help:"Pin the skills as they are now. Look at them first."`
}

// shelfOf reads the skills for a command, which needs no other setting.
func shelfOf(s *config.Settings) (*shelf, error) {
	f := readFile(s)
	if err := s.Err(); err != nil {
		return nil, err
	}
	sh, err := openShelf(s, f.skills)
	if err != nil {
		return nil, fmt.Errorf("%w: skills: %w", errSettings, err)
	}
	return sh, nil
}

type skillsListCmd struct{}

// Run lists the skills.
func (skillsListCmd) Run(_ context.Context, e env, s *config.Settings) error {
	sh, err := shelfOf(s)
	if err != nil {
		return err
	}
	for _, one := range sh.all {
		fmt.Fprintf(e.stdout, "%-24s %.19s  %s\n    %s\n", one.Name, one.Digest, sh.state(one), printable(one.Mount().Doc))
	}
	for _, p := range sh.odd {
		fmt.Fprintf(e.stdout, "note: %v\n", p)
	}
	if len(sh.all) == 0 {
		fmt.Fprintf(e.stderr, "there are no skills in %s\n", sh.dir)
	}
	return nil
}

type skillsCheckCmd struct{}

// Run fails if anything is wrong with the skills or differs from the lock.
func (skillsCheckCmd) Run(_ context.Context, e env, s *config.Settings) error {
	sh, err := shelfOf(s)
	if err != nil {
		return err
	}
	wrong := slices.Clone(sh.drift)
	if root, err := os.OpenRoot(sh.dir); err == nil {
		wrong = append(wrong, skill.Check(root.FS(), ".")...)
		if err := root.Close(); err != nil {
			return err
		}
	} else {
		wrong = append(wrong, skill.Problem{Path: sh.dir, Text: "there is no such folder"})
	}
	for _, p := range wrong {
		fmt.Fprintln(e.stdout, p)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("skills in %s: %s", sh.dir, count(len(wrong), "problem", "problems"))
	}
	_, err = fmt.Fprintf(e.stdout, "%s checked, all is fine\n", count(len(sh.all), "skill", "skills"))
	return err
}

type skillsLockCmd struct{}

// Run writes the lock and says what changes by it.
func (skillsLockCmd) Run(_ context.Context, e env, s *config.Settings) error {
	sh, err := shelfOf(s)
	if err != nil {
		return err
	}
	for _, p := range sh.odd {
		fmt.Fprintf(e.stdout, "note: %v\n", p)
	}
	now := skill.Pin(sh.all)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch sh.pins[name] {
		case now[name]:
		case "":
			fmt.Fprintf(e.stdout, "new      %s\n", name)
		default:
			fmt.Fprintf(e.stdout, "changed  %s\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sh.pins)) {
		if now[name] == "" {
			fmt.Fprintf(e.stdout, "gone     %s\n", name)
		}
	}
	if err := replaceFile(sh.lock, []byte(now.String())); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s pinned in %s\n", count(len(now), "skill", "skills"), sh.lock)
	return err
}

// replaceFile puts a file in the place of another at once: who reads it, or
// comes back after a crash, finds the one or the other.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
