package skill_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness/skill"
)

// tree makes a file system of text files.
func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return m
}

// md is a SKILL.md with the given lines of frontmatter.
func md(lines ...string) string {
	return "---\n" + strings.Join(lines, "\n") + "\n---\nBody\n"
}

func load(t *testing.T, fsys fs.FS, dir string) skill.Skill {
	t.Helper()
	s, _, err := skill.Load(fsys, dir, skill.Lenient)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// texts are problems or the lines of an error without their paths.
func texts(problems []skill.Problem) (list []string) {
	for _, p := range problems {
		list = append(list, p.Text)
	}
	return list
}

// TestRules holds the loader to the rules of the layout, the cases of the
// reference validator among them. Each case says what a strict load finds
// wrong, and whether a lenient load takes the skill all the same.
func TestRules(t *testing.T) {
	t.Parallel()
	const d = "description: A test skill"
	for name, tt := range map[string]struct {
		dir, text string
		wrong     string // part of what strict says; "" if it is good
		lenient   bool
	}{
		"valid":               {"my-skill", md("name: my-skill", d), "", true},
		"all fields":          {"my-skill", md("name: my-skill", d, "license: MIT", "compatibility: Needs git", "metadata:", "  author: Test", "allowed-tools: read"), "", true},
		"no body":             {"my-skill", "---\nname: my-skill\n" + d + "\n---", "", true},
		"windows lines":       {"my-skill", strings.ReplaceAll(md("name: my-skill", d), "\n", "\r\n"), "", true},
		"byte order mark":     {"my-skill", "\uFEFF" + md("name: my-skill", d), "", true},
		"blanks at the fence": {"my-skill", "--- \nname: my-skill\n" + d + "\n---\t\nBody", "", true},
		"comments":            {"my-skill", md("# what it is", "name: my-skill # short", d), "", true},

		"name missing":          {"my-skill", md(d), "has no name", false},
		"name empty":            {"my-skill", md(`name: ""`, d), "has no name", false},
		"name null":             {"my-skill", md("name:", d), "has no name", false},
		"name a list":           {"my-skill", md("name: [a]", d), "name is not a plain text", false},
		"name a number":         {"123", md("name: 123", d), "", true},
		"name uppercase":        {"MySkill", md("name: MySkill", d), "lower case", true},
		"name 64":               {strings.Repeat("a", 64), md("name: "+strings.Repeat("a", 64), d), "", true},
		"name 65":               {strings.Repeat("a", 65), md("name: "+strings.Repeat("a", 65), d), "65 characters", true},
		"name 129":              {strings.Repeat("a", 129), md("name: "+strings.Repeat("a", 129), d), "the name may hold", false},
		"name 64 wide letters":  {strings.Repeat("я", 64), md("name: "+strings.Repeat("я", 64), d), "", true},
		"name leading hyphen":   {"-my-skill", md("name: -my-skill", d), "hyphens", true},
		"name trailing hyphen":  {"my-skill-", md("name: my-skill-", d), "hyphens", true},
		"name double hyphen":    {"my--skill", md("name: my--skill", d), "hyphens", true},
		"name underscore":       {"my_skill", md("name: my_skill", d), "may hold lower-case letters", true},
		"name with a blank":     {"my skill", md("name: my skill", d), "may hold lower-case letters", true},
		"name of a path":        {"x", md("name: ../x", d), "may hold lower-case letters", false},
		"name of two lines":     {"x", md(`name: "x\ny"`, d), "may hold lower-case letters", false},
		"name with a mark":      {"x", md(`name: "x<notice>"`, d), "may hold lower-case letters", false},
		"name Chinese":          {"技能", md("name: 技能", d), "", true},
		"name Russian":          {"мой-навык", md("name: мой-навык", d), "", true},
		"name Russian capitals": {"НАВЫК", md("name: НАВЫК", d), "lower case", true},
		"name decomposed":       {"café", md("name: cafe\u0301", d), "", true},
		"folder decomposed":     {"cafe\u0301", md("name: café", d), "", true},
		"name of compatibility": {"file", md("name: ﬁle", d), "", true},
		"folder differs":        {"wrong-name", md("name: correct-name", d), "differs from that of its folder", true},

		"description missing":  {"my-skill", md("name: my-skill"), "has no description", false},
		"description empty":    {"my-skill", md("name: my-skill", "description: '  '"), "has no description", false},
		"description 1024":     {"my-skill", md("name: my-skill", "description: "+strings.Repeat("é", 1024)), "", true},
		"description 1025":     {"my-skill", md("name: my-skill", "description: "+strings.Repeat("é", 1025)), "1025 characters", true},
		"description a list":   {"my-skill", md("name: my-skill", "description: [a, b]"), "description is not a plain text", false},
		"compatibility 500":    {"my-skill", md("name: my-skill", d, "compatibility: "+strings.Repeat("x", 500)), "", true},
		"compatibility 501":    {"my-skill", md("name: my-skill", d, "compatibility: "+strings.Repeat("x", 501)), "501 characters", true},
		"compatibility a list": {"my-skill", md("name: my-skill", d, "compatibility: [x]"), "compatibility is not a plain text", true},
		"metadata a text":      {"my-skill", md("name: my-skill", d, "metadata: x"), "metadata is not a mapping", true},
		"metadata a list":      {"my-skill", md("name: my-skill", d, "metadata: [x]"), "metadata is not a mapping", true},
		"metadata null":        {"my-skill", md("name: my-skill", d, "metadata:"), "", true},
		"metadata nested":      {"my-skill", md("name: my-skill", d, "metadata:", "  a: {b: c}"), `metadata "a" is not a plain text`, true},
		"unknown field":        {"my-skill", md("name: my-skill", d, "version: 1"), `unknown field "version"`, true},
		"field twice":          {"my-skill", md("name: my-skill", "name: my-skill", d), "not YAML", false},

		"tools with a part":           {"my-skill", md("name: my-skill", d, "allowed-tools: Bash(jq:*) Bash(git add:*)"), "", true},
		"tools in a line":             {"my-skill", md("name: my-skill", d, "allowed-tools: [Read, Write]"), "", true},
		"tools in lines":              {"my-skill", md("name: my-skill", d, "allowed-tools:", "  - Read", "  - Grep"), "", true},
		"tools not all texts":         {"my-skill", md("name: my-skill", d, "allowed-tools:", "  - Read", "  - 123"), "not a text", true},
		"tools a number":              {"my-skill", md("name: my-skill", d, "allowed-tools: 123"), "neither a text nor a list", true},
		"tools a mapping":             {"my-skill", md("name: my-skill", d, "allowed-tools: {a: b}"), "neither a text nor a list", true},
		"tools with a part of others": {"my-skill", md("name: my-skill", d, "allowed-tools: Read(src/**)"), "cannot be told apart", true},

		"no frontmatter":       {"my-skill", "# My skill", "does not begin with", false},
		"empty file":           {"my-skill", "", "does not begin with", false},
		"fence not alone":      {"my-skill", "---x\nname: my-skill\n---\n", "does not begin with", false},
		"fence not closed":     {"my-skill", "---\nname: my-skill\n" + d + "\n", "not closed", false},
		"fence in a value":     {"my-skill", "---\nname: my-skill\ndescription: a --- b\n---\nBody", "", true},
		"broken YAML":          {"my-skill", md("name: [invalid", d), "not YAML", false},
		"colon in a text":      {"my-skill", md("name: my-skill", "description: use when: asked"), "not YAML", false},
		"a list":               {"my-skill", md("- just", "- a list"), "not a mapping", false},
		"a text":               {"my-skill", md("just a text"), "not a mapping", false},
		"nothing":              {"my-skill", md(""), "empty", false},
		"an alias":             {"my-skill", md("name: &n my-skill", "description: *n"), "name is not a plain text", false},
		"not UTF-8":            {"my-skill", md("name: my-skill", "description: \xff"), "not UTF-8", false},
		"long frontmatter":     {"my-skill", md("name: my-skill", d, "#"+strings.Repeat("x", 20<<10)), "longer than", false},
		"long body":            {"my-skill", md("name: my-skill", d) + strings.Repeat("x", 101<<10), "more than", false},
		"a key in the text":    {"my-skill", md("name: my-skill", d) + "AKIA" + "ABCDEFGHIJKLMNOP", "looks like a secret", true},
		"a closing fence only": {"my-skill", "---\n---\n", "empty", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := tree(map[string]string{"skills/" + tt.dir + "/SKILL.md": tt.text})
			s, _, err := skill.Load(fsys, "skills/"+tt.dir, skill.Strict)
			switch {
			case tt.wrong == "" && err != nil:
				t.Errorf("strict: %v", err)
			case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
				t.Errorf("strict: %v, want %q", err, tt.wrong)
			case err != nil && s.Name != "":
				t.Errorf("strict: a skill beside the error")
			}
			s, noted, err := skill.Load(fsys, "skills/"+tt.dir, skill.Lenient)
			if (err == nil) != tt.lenient {
				t.Errorf("lenient: %v, want loaded %t", err, tt.lenient)
			}
			if err == nil && tt.wrong != "" && !strings.Contains(strings.Join(texts(noted), "\n"), tt.wrong) {
				t.Errorf("lenient: noted %q, want %q", texts(noted), tt.wrong)
			}
			if err == nil && (s.Name == "" || s.Description == "" || len([]rune(s.Description)) > 1024 || !strings.HasPrefix(s.Digest, "sha256:")) {
				t.Errorf("lenient: loaded with holes: %+v", s)
			}
		})
	}
}

func TestEveryProblemIsTold(t *testing.T) {
	t.Parallel()
	fsys := tree(map[string]string{"a/SKILL.md": md("name: B_", "compatibility: "+strings.Repeat("x", 501), "x: y")})
	got := skill.Check(fsys, ".")
	want := []skill.Problem{
		{Path: "a/SKILL.md", Text: `unknown field "x"`},
		{Path: "a/SKILL.md", Text: "the name may hold lower-case letters, digits and hyphens"},
		{Path: "a/SKILL.md", Text: "the name must be in lower case"},
		{Path: "a/SKILL.md", Text: `the name "B_" differs from that of its folder`},
		{Path: "a/SKILL.md", Text: "has no description"},
		{Path: "a/SKILL.md", Text: "compatibility has 501 characters, at most 500 are allowed"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	good := md("name: s", "description: d")
	big := strings.Repeat("x", 1<<20+1)
	for name, tt := range map[string]struct {
		files   map[string]string
		wrong   string
		lenient bool
		lists   string // resources after a lenient load
	}{
		"plain":              {map[string]string{"s/SKILL.md": good, "s/LICENSE.txt": "x", "s/scripts/a.sh": "x", "s/assets/a.png": "\x89PNG"}, "", true, "LICENSE.txt assets/a.png scripts/a.sh"},
		"no SKILL.md":        {map[string]string{"s/README.md": good}, "there is no SKILL.md", false, ""},
		"in lower case":      {map[string]string{"s/skill.md": good}, "", true, ""},
		"both cases":         {map[string]string{"s/skill.md": "x", "s/SKILL.md": good}, "", true, "skill.md"},
		"in another case":    {map[string]string{"s/Skill.md": good}, "there is no SKILL.md", false, ""},
		"only deeper":        {map[string]string{"s/a/SKILL.md": good}, "there is no SKILL.md", false, ""},
		"missing":            {map[string]string{"t/SKILL.md": good}, "cannot be read", false, ""},
		"a file":             {map[string]string{"s": good}, "not a folder", false, ""},
		"too large a file":   {map[string]string{"s/SKILL.md": good, "s/a": big, "s/b": "x"}, "1048577 bytes", true, "b"},
		"too large a folder": {map[string]string{"s/SKILL.md": good, "s/1": big[1:], "s/2": big[1:], "s/3": big[1:], "s/4": big[1:], "s/5": big[1:]}, "at most 5242880", true, "1 2 3 4 5"},
		"environment":        {map[string]string{"s/SKILL.md": good, "s/.env": "A=b"}, "looks like a secret", true, ""},
		"environment named":  {map[string]string{"s/SKILL.md": good, "s/.env.production": "A=b"}, "looks like a secret", true, ""},
		"key by name":        {map[string]string{"s/SKILL.md": good, "s/assets/id_rsa": "x"}, "looks like a secret", true, ""},
		"key by content":     {map[string]string{"s/SKILL.md": good, "s/a.txt": "-----BEGIN RSA " + "PRIVATE KEY-----"}, "looks like a secret", true, ""},
		"token by content":   {map[string]string{"s/SKILL.md": good, "s/scripts/a.py": "t = 'ghp_" + strings.Repeat("a", 36) + "'"}, "looks like a secret", true, ""},
		"certificate":        {map[string]string{"s/SKILL.md": good, "s/assets/ca.crt": "-----BEGIN " + "CERTIFICATE-----\nMIID"}, "", true, "assets/ca.crt"},
		"second token":       {map[string]string{"s/SKILL.md": good, "s/a.txt": "xox is not one, xox" + "b-1234567890-abcdef is"}, "looks like a secret", true, ""},
		"words on secrets":   {map[string]string{"s/SKILL.md": good, "s/secrets.md": "Never print a private key."}, "", true, "secrets.md"},
		"version control":    {map[string]string{"s/SKILL.md": good, "s/.git/config": "x"}, "version control", true, ""},
		"too deep to read":   {map[string]string{"s/SKILL.md": good, "s/a/b/c.md": "x"}, "deeper than one folder", true, ""},
		"much too deep":      {map[string]string{"s/SKILL.md": good, "s/1/2/3/4/5/6/7/8": "x"}, "lies too deep", false, ""},
		"reference not text": {map[string]string{"s/SKILL.md": good, "s/a.md": "\xff"}, "not UTF-8", true, ""},
		"invisible name":     {map[string]string{"s/SKILL.md": good, "s/a\u202eb": "x"}, "name that cannot be shown", true, ""},
		"odd name":           {map[string]string{"s/SKILL.md": good, "s/a\nRead b": "x"}, "name that cannot be shown", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := tree(tt.files)
			_, _, err := skill.Load(fsys, "s", skill.Strict)
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Errorf("strict: %v, want %q", err, tt.wrong)
			}
			s, noted, err := skill.Load(fsys, "s", skill.Lenient)
			if (err == nil) != tt.lenient {
				t.Fatalf("lenient: %v, want loaded %t", err, tt.lenient)
			}
			if got := strings.Join(s.Resources(), " "); got != tt.lists {
				t.Errorf("resources %q, want %q", got, tt.lists)
			}
			if strings.HasPrefix(tt.wrong, "at most") {
				return // the size of the folder is no matter for a lenient load
			}
			if err == nil && tt.wrong != "" && !strings.Contains(strings.Join(texts(noted), "\n"), tt.wrong) {
				t.Errorf("lenient: noted %q, want %q", texts(noted), tt.wrong)
			}
		})
	}
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	fsys := tree(map[string]string{"s/SKILL.md": md("name: s", "description: d")})
	for i := range 40 {
		fsys[fmt.Sprintf("s/a/b/%d", i)] = &fstest.MapFile{Mode: 0o644}
	}
	_, noted, err := skill.Load(fsys, "s", skill.Lenient)
	if err != nil || len(noted) != 21 || noted[20].Text != "and 20 problems more" {
		t.Errorf("%d problems, %v", len(noted), err)
	}
	for i := range 2000 {
		fsys[fmt.Sprintf("s/%d", i)] = &fstest.MapFile{Mode: 0o644}
	}
	if _, _, err := skill.Load(fsys, "s", skill.Lenient); err == nil || !strings.Contains(err.Error(), "more than 2000") {
		t.Error(err)
	}
}

func TestHugeFolder(t *testing.T) {
	t.Parallel()
	fsys := tree(map[string]string{"s/SKILL.md": md("name: s", "description: d"), "s/a": strings.Repeat("x", 33<<20), "s/b": "x"})
	if _, _, err := skill.Load(fsys, "s", skill.Lenient); err == nil || !strings.Contains(err.Error(), "holds more than") {
		t.Error(err)
	}
}

// TestDisk looks at what only a real file system has.
func TestDisk(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string, mode fs.FileMode) {
		t.Helper()
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", "top secret", 0o644)
	for _, name := range []string{"good", "linked", "running"} {
		write("skills/"+name+"/SKILL.md", md("name: "+name, "description: d"), 0o644)
	}
	write("skills/good/scripts/a.sh", "x", 0o755)
	write("skills/running/a.sh", "x", 0o755)
	link("../../secret", "skills/linked/a.txt")
	link("..", "skills/linked/up")
	link("good", "skills/again")
	if err := os.Mkdir(filepath.Join(root, "skills/main"), 0o755); err != nil {
		t.Fatal(err)
	}
	link("../good/SKILL.md", "skills/main/SKILL.md")
	fsys := os.DirFS(root)

	got := map[string]string{}
	for _, p := range skill.Check(fsys, "skills") {
		got[p.Path] = p.Text
	}
	want := map[string]string{
		"skills/again":         "is a link; links are not followed",
		"skills/linked/a.txt":  "is a link; links are not followed",
		"skills/linked/up":     "is a link; links are not followed",
		"skills/main":          "there is no SKILL.md",
		"skills/main/SKILL.md": "is a link; links are not followed",
		"skills/running/a.sh":  "may be executed, which only files in scripts may be",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	all, _, err := skill.LoadAll(fsys, "skills", skill.Lenient)
	if err != nil || names(all) != "good linked running" {
		t.Fatalf("%s, %v", names(all), err)
	}
	if r := all[1].Resources(); len(r) != 0 {
		t.Errorf("links are offered: %q", r)
	}
	for _, name := range []string{"a.txt", "up/good/SKILL.md", "../../secret"} {
		if text, err := all[1].Read(name); err == nil {
			t.Errorf("read %s: %q", name, text)
		}
	}
	if _, _, err := skill.Load(fsys, "skills/again", skill.Lenient); err == nil {
		t.Error("a folder that is a link was loaded")
	}

	// A file that becomes a link after the load is not followed.
	if err := os.Remove(filepath.Join(root, "skills/good/scripts/a.sh")); err != nil {
		t.Fatal(err)
	}
	link("../../../secret", "skills/good/scripts/a.sh")
	if text, err := all[0].Read("scripts/a.sh"); err == nil || !strings.Contains(err.Error(), "not a plain file") {
		t.Errorf("%q, %v", text, err)
	}
}

func names(skills []skill.Skill) string {
	var list []string
	for _, s := range skills {
		list = append(list, s.Name)
	}
	return strings.Join(list, " ")
}

// foreign is a skill as others publish them.
var foreign = map[string]string{
	"pdf/SKILL.md": `---
name: pdf
description: "Work with PDF files: read and extract text or tables, merge, split, rotate, fill in forms.
  Use it whenever a .pdf is mentioned, or when somebody asks to \"make a PDF\"."
license: Proprietary. LICENSE.txt has complete terms
compatibility: >-
  Requires Python 3.11+ with pypdf, and poppler-utils
metadata:
  author: example-org
  version: 1.0
allowed-tools: Read Bash(python:*) Bash(pdftotext:*)
---

# PDF processing

## Quick start

` + "```python" + `
from pypdf import PdfReader
for page in PdfReader("in.pdf").pages:
    print(page.extract_text())
` + "```" + `

For forms, read [FORMS.md](FORMS.md) first. Run ` + "`scripts/check.py`" + ` before you fill in anything.

---

| task | with |
| --- | --- |
| merge | pypdf |
`,
	"pdf/LICENSE.txt":         "All rights reserved.\n",
	"pdf/FORMS.md":            "# Forms\n\nCheck first.\n",
	"pdf/references/table.md": "# Tables\n",
	"pdf/scripts/check.py":    "#!/usr/bin/env python3\nprint('ok')\n",
	"pdf/assets/logo.png":     "\x89PNG\r\n\x1a\n\x00\x00",
}

// TestForeignSkill loads a published shape as it is, even by the strict rules.
func TestForeignSkill(t *testing.T) {
	t.Parallel()
	s, noted, err := skill.Load(tree(foreign), "pdf", skill.Strict)
	if err != nil || len(noted) > 0 {
		t.Fatal(err, noted)
	}
	_, body, _ := strings.Cut(foreign["pdf/SKILL.md"], "\n---\n")
	for what, pair := range map[string][2]any{
		"name":          {s.Name, "pdf"},
		"description":   {s.Description, `Work with PDF files: read and extract text or tables, merge, split, rotate, fill in forms. Use it whenever a .pdf is mentioned, or when somebody asks to "make a PDF".`},
		"license":       {s.License, "Proprietary. LICENSE.txt has complete terms"},
		"compatibility": {s.Compatibility, "Requires Python 3.11+ with pypdf, and poppler-utils"},
		"metadata":      {s.Metadata, map[string]string{"author": "example-org", "version": "1.0"}},
		"tools":         {s.AllowedTools, []string{"Read", "Bash(python:*)", "Bash(pdftotext:*)"}},
		"resources":     {s.Resources(), []string{"FORMS.md", "LICENSE.txt", "assets/logo.png", "references/table.md", "scripts/check.py"}},
		"body":          {s.Body, strings.TrimSpace(body)},
	} {
		if d := cmp.Diff(pair[1], pair[0]); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestForeignSkillWithMore loads a shape with fields of some host's own, and
// says what it did not use.
func TestForeignSkillWithMore(t *testing.T) {
	t.Parallel()
	fsys := tree(map[string]string{"community/Weather/SKILL.md": `---
name: Weather Report
description: |
  Tell the weather of a place.

  Use for "will it rain".
version: 2.1.0
user-invocable: true
allowed-tools: WebFetch, Bash(curl:*), Read(docs/**)
metadata: {"host": {"emoji": "x", "requires": {"bins": ["curl"]}}, "homepage": "https://example.com"}
---
# Weather

Ask with curl.
`})
	s, noted, err := skill.Load(fsys, "community/Weather", skill.Lenient)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`unknown field "version"`, `unknown field "user-invocable"`,
		`allowed-tools: "Read(docs/**)" names no tool, or a part of one that cannot be told apart`,
		`metadata "host" is not a plain text`,
		"the name may hold lower-case letters, digits and hyphens", "the name must be in lower case",
		`the name "Weather Report" differs from that of its folder`,
	}
	if d := cmp.Diff(want, texts(noted)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"WebFetch", "Bash(curl:*)"}, s.AllowedTools); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"homepage": "https://example.com"}, s.Metadata); d != "" {
		t.Error(d)
	}
	if m := s.Mount(); m.Doc != `Tell the weather of a place. Use for "will it rain".` {
		t.Errorf("doc %q", m.Doc)
	}
}

func TestAllowedTools(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"":                              nil,
		" ~":                            nil,
		" ''":                           {},
		" []":                           {},
		" Read Grep":                    {"Read", "Grep"},
		" Read, Grep,Glob":              {"Read", "Grep", "Glob"},
		" Bash(git add:*)  Bash(ls)":    {"Bash(git add:*)", "Bash(ls)"},
		" [Read, 'Bash(git commit:*)']": {"Read", "Bash(git commit:*)"},
		" >-\n  Read\n  Grep":           {"Read", "Grep"},
		" mcp__tracker__search_issues":  {"mcp__tracker__search_issues"},
		" Bash(git:* Read":              {}, // never closed: allows nothing
		" Bash() Read(x)":               {},
		" *":                            nil, // an alias to nothing is no YAML
	} {
		fsys := tree(map[string]string{"s/SKILL.md": md("name: s", "description: d", "allowed-tools:"+value)})
		s, _, err := skill.Load(fsys, "s", skill.Lenient)
		if value == " *" {
			if err == nil {
				t.Errorf("%q: loaded", value)
			}
			continue
		}
		if d := cmp.Diff(want, s.AllowedTools); d != "" || err != nil {
			t.Errorf("%q: %v %s", value, err, d)
		}
	}
}

// FuzzLoad feeds the loader with any SKILL.md: it never panics, and what it
// takes keeps the promises that the rest relies on.
func FuzzLoad(f *testing.F) {
	f.Add(foreign["pdf/SKILL.md"])
	f.Add(md("name: s", "description: |", "  a", "metadata: {a: [b]}", "allowed-tools: [x, 1]"))
	f.Add(md("name: &a s", "description: *a", "<<: *a"))
	f.Add(md("? name", ": s", "description: !!str d"))
	f.Add("---\r\nname: s\r\n---\r\n")
	f.Add(md(strings.Repeat("[", 2000)))
	f.Add(md("a: "+strings.Repeat("{a: ", 500), "name: s"))
	f.Fuzz(func(t *testing.T, text string) {
		fsys := tree(map[string]string{"skills/s/SKILL.md": text})
		strict, _, strictErr := skill.Load(fsys, "skills/s", skill.Strict)
		s, _, err := skill.Load(fsys, "skills/s", skill.Lenient)
		if strictErr == nil && (err != nil || strict.Digest != s.Digest || strict.Name != s.Name) {
			t.Fatalf("strict takes what lenient does not: %v", err)
		}
		if err != nil {
			return
		}
		m := s.Mount()
		if s.Name == "" || strings.ContainsAny(s.Name, "\r\n<>\"/\\:") || len([]rune(s.Description)) > 1024 {
			t.Fatalf("name %q, description %q", s.Name, s.Description)
		}
		if strings.ContainsAny(m.Doc, "\r\n") || !strings.Contains(m.Body, s.Body) {
			t.Fatalf("mounted with doc %q", m.Doc)
		}
		if strictErr == nil && s.Name != path.Base(s.Dir) {
			t.Fatalf("strict took the name %q", s.Name)
		}
	})
}
