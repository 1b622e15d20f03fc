package skill

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A file is one that was seen when the skill was loaded.
type file struct {
	path  string // below the skill
	bytes int64
	sum   [sha256.Size]byte
	why   string // it cannot be read as a resource, "" if it can
}

// vcs are folders that no skill and no digest takes in.
var vcs = regexp.MustCompile(`^\.(git|hg|svn|jj)$`)

// walk takes in the files of a folder, in an order that does not matter. It
// says whether it came to the end.
func (l *loader) walk(dir string, depth int) bool {
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil {
		l.refuse(dir, "cannot be read: "+reason(err))
		return false
	}
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		l.entries++
		switch {
		case l.entries > maxEntries:
			l.refuse(l.skill.Dir, fmt.Sprintf("holds more than %d files and folders", maxEntries))
			return false
		case vcs.MatchString(e.Name()):
			l.object(at, "is of version control and no part of a skill")
		case e.IsDir() && depth == maxDepth:
			l.refuse(at, "lies too deep")
			return false
		case e.IsDir():
			if !l.walk(at, depth+1) {
				return false
			}
		case e.Type()&fs.ModeSymlink != 0:
			l.object(at, "is a link; links are not followed")
		case !e.Type().IsRegular():
			l.object(at, "is not a plain file")
		default:
			l.take(at, e)
		}
		if l.bytes > maxForeignBytes {
			l.refuse(l.skill.Dir, fmt.Sprintf("holds more than %d bytes", maxForeignBytes))
			return false
		}
	}
	return true
}

// take looks at one file.
func (l *loader) take(at string, e fs.DirEntry) {
	f := file{path: strings.TrimPrefix(at, l.skill.Dir+"/")}
	if info, err := e.Info(); l.mode == Strict && err == nil && info.Mode()&0o111 != 0 && !strings.HasPrefix(f.path, "scripts/") {
		l.refuse(at, "may be executed, which only files in scripts may be")
	}
	data, n, s, err := hashed(l.fsys, at)
	if err != nil {
		l.refuse(at, "cannot be read: "+reason(err))
		return
	}
	f.bytes, f.sum = n, s
	l.bytes += n
	if f.path == "SKILL.md" || f.path == "skill.md" {
		l.mains[f.path] = data
	}
	switch {
	case n > maxFileBytes:
		f.why = fmt.Sprintf("has %d bytes, at most %d are allowed", n, maxFileBytes)
	case !utf8.ValidString(f.path) || clean(f.path) != f.path || strings.ContainsAny(f.path, "\n\t"):
		f.why = "has a name that cannot be shown"
	case secretName.MatchString(path.Base(at)) || secret(data):
		f.why = "looks like a secret"
	case strings.Count(f.path, "/") > 1:
		f.why = "lies deeper than one folder"
	case strings.EqualFold(path.Ext(at), ".md") && l.mains[f.path] == nil && !utf8.Valid(data):
		f.why = "not UTF-8"
	}
	if f.why != "" {
		l.object(at, f.why)
	}
	l.skill.files = append(l.skill.files, f)
}

// What is named or written like a credential. A false alarm costs a renamed
// file; a miss may cost an account.
var (
	secretName = regexp.MustCompile(`(?i)^(\.env(\..+)?|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(rsa|dsa|ecdsa|ed25519)|` +
		`\.(netrc|npmrc|pypirc|pgpass|git-credentials|htpasswd)|credentials(\.(json|ya?ml|ini|toml))?|secrets?\.(json|ya?ml|ini|toml|env))$`)
	token      = regexp.MustCompile(`^[0-9A-Za-z_-]{20}`)
	awsToken   = regexp.MustCompile(`^[0-9A-Z]{16}\b`)
	secretForm = []struct {
		lead string
		rest *regexp.Regexp
	}{
		{"-----BEGIN ", regexp.MustCompile(`^([A-Z]+ )*PRIVATE KEY-----`)},
		{"xox", regexp.MustCompile(`^[abeoprs]-[0-9A-Za-z-]{16}`)},
		{"AKIA", awsToken},
		{"ASIA", awsToken},
		{"gho_", token},
		{"ghp_", token},
		{"ghr_", token},
		{"ghs_", token},
		{"ghu_", token},
		{"github_pat_", token},
		{"xapp-", token},
		{"sk_live_", token},
		{"rk_live_", token},
		{"whsec_", token},
		{"sk-ant-", token},
		{"sk-proj-", token},
		{"AIza", token},
	}
)

// secret says whether a text holds what is written like a credential. Looking
// for the beginnings first is much faster than one expression over everything.
func secret(text []byte) bool {
	for _, form := range secretForm {
		rest := text
		for {
			i := bytes.Index(rest, []byte(form.lead))
			if i < 0 {
				break
			}
			if rest = rest[i+len(form.lead):]; form.rest.Match(rest[:min(len(rest), 64)]) {
				return true
			}
		}
	}
	return false
}

// hashed reads a file to its end, but no further than a skill may be large. The
// beginning is returned as well, up to the size of a file.
func hashed(fsys fs.FS, at string) (data []byte, n int64, s [sha256.Size]byte, err error) {
	f, err := fsys.Open(at)
	if err != nil {
		return nil, 0, s, err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	r := io.TeeReader(io.LimitReader(f, maxForeignBytes+1), h)
	if data, err = io.ReadAll(io.LimitReader(r, maxFileBytes)); err != nil {
		return nil, 0, s, err
	}
	more, err := io.Copy(io.Discard, r)
	return data, int64(len(data)) + more, [sha256.Size]byte(h.Sum(nil)), err
}

// readCapped reads a plain file of at most limit bytes.
func readCapped(fsys fs.FS, at string, limit int64) ([]byte, error) {
	if info, err := fs.Lstat(fsys, at); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("is not a plain file")
	}
	data, err := readSome(fsys, at, limit+1)
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("has more than %d bytes", limit)
	}
	return data, err
}

// readSome reads the first n bytes of a file.
func readSome(fsys fs.FS, at string, n int64) ([]byte, error) {
	f, err := fsys.Open(at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, n))
}

// digestFiles names a set of files by their paths and contents, in whatever
// order they were found. Modes and times do not count.
func digestFiles(files []file) string {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %x\n", len(f.path), f.path, f.sum)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Limits of what Read returns, in bytes of the file.
const (
	maxTextBytes   = 64 << 10
	maxBinaryBytes = 32 << 10
)

// Resources lists what Read can read: the paths of files below the skill, by
// name, at most one folder deep.
func (s Skill) Resources() []string {
	var list []string
	main := mainFile(s.files)
	for _, f := range s.files {
		if f.why == "" && f.path != main {
			list = append(list, f.path)
		}
	}
	return list
}

// Read returns a resource for a model: text as it is, cut at 64 KiB with a note,
// and anything else in base64 below a line that says so, up to 32 KiB. It fails
// for what Resources does not list and for a file that is no longer what it was
// when the skill was loaded; the error may be told to the model.
func (s Skill) Read(name string) (string, error) {
	name = strings.TrimPrefix(name, "./")
	i := slices.IndexFunc(s.files, func(f file) bool { return f.path == name })
	if i < 0 || !slices.Contains(s.Resources(), name) {
		if i >= 0 && s.files[i].why != "" {
			return "", fmt.Errorf("%q of skill %s cannot be read: %s", name, s.Name, s.files[i].why)
		}
		return "", fmt.Errorf("skill %s has no resource %q; there are: %s", s.Name, clip(name), s.list())
	}
	data, err := readCapped(s.fsys, path.Join(s.Dir, name), maxFileBytes)
	if err != nil {
		return "", fmt.Errorf("%q of skill %s cannot be read now: %s", name, s.Name, reason(err))
	}
	if sha256.Sum256(data) != s.files[i].sum {
		return "", fmt.Errorf("%q of skill %s has changed since the skill was loaded; it is not read", name, s.Name)
	}
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		if len(data) <= maxTextBytes {
			return string(data), nil
		}
		return strings.ToValidUTF8(string(data[:maxTextBytes]), "") + fmt.Sprintf("\n[cut here: %d of %d bytes]", maxTextBytes, len(data)), nil
	}
	if len(data) > maxBinaryBytes {
		return "", fmt.Errorf("%q of skill %s is not text and has %d bytes, at most %d can be read", name, s.Name, len(data), maxBinaryBytes)
	}
	kind := cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream")
	return fmt.Sprintf("[%s, %d bytes in base64]\n%s", kind, len(data), base64.StdEncoding.EncodeToString(data)), nil
}

// clean takes out what cannot be seen and could mislead: control and format
// characters but for newlines and tabs.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, text)
}

// maxListed bounds how many resources a model is told of.
const maxListed = 100

func (s Skill) list() string {
	names := s.Resources()
	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf(" and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ") + more
}
