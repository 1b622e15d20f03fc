package text

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"

	"github.com/heddlehq/heddle/chat"
)

func TestDialects(t *testing.T) {
	t.Parallel()
	const z = zeroWidth
	for _, tc := range []struct{ name, in, discord, gfm, plain string }{
		{"plain", "Hello there.\nSecond line", "Hello there.\nSecond line", "Hello there.\nSecond line", "Hello there.\nSecond line"},
		{"emphasis", "**bold** *it* ~~gone~~ `x`", "**bold** *it* ~~gone~~ `x`", "**bold** *it* ~~gone~~ `x`", "bold it gone x"},
		{"marks that are none", `1 \* 2 \_x\_ snake_case \[a\]`, `1 \* 2 \_x\_ snake_case \[a\]`, `1 \* 2 \_x\_ snake_case \[a\]`, "1 * 2 _x_ snake_case [a]"},
		{"bold beside a letter", "**작성자**는 a**b**c", "**작성자**는 a**b**c", "**작성자**는 a**b**c", "작성자는 abc"},
		{"bold beside a letter, without one", "_(a)_**b**", "*(a)*" + z + "**b**", "*(a)*<!-- -->**b**", "(a)b"},
		{"heading", "## A title\n\n#### Deep", "## A title\n\n**Deep**", "## A title\n\n#### Deep", "A title\n\nDeep"},
		{"start of a line", "\\# no heading\n\\- no item\n1\\. no number\n\\> no quote", "\\# no heading\n\\- no item\n1\\. no number\n\\> no quote", "\\# no heading\n\\- no item\n1\\. no number\n\\> no quote", "# no heading\n- no item\n1. no number\n> no quote"},
		{"everybody", "@everyone and @here", "@" + z + "everyone and @" + z + "here", "@" + z + "everyone and @" + z + "here", "@everyone and @here"},
		{"tokens", "<@1> <@&2> <#3> <t:4>", "\\<" + z + "@1> \\<" + z + "@\\&2> \\<" + z + "#3> \\<" + z + "t:4>", "\\<@" + z + "1> \\<@\\&2> \\<#3> \\<t:4>", "<@1> <@&2> <#3> <t:4>"},
		{"names", "@octocat, @org/team and me@x.test", "@octocat, @org/team and me@x.test", "@" + z + "octocat, @" + z + "org/team and me@x.test", "@octocat, @org/team and me@x.test"},
		{"closing words", "fixes #1, Closes: a/b#2; see #3. resolve GH-4", "fixes #1, Closes: a/b#2; see #3. resolve GH-4", "fixes #" + z + "1, Closes: a/b#" + z + "2; see #3. resolve GH-" + z + "4", "fixes #1, Closes: a/b#2; see #3. resolve GH-4"},
		{"command of a bot", "/merge\n/usr/bin is not /merge", "/merge\n/usr/bin is not /merge", z + "/merge\n" + z + "/usr/bin is not /merge", "/merge\n/usr/bin is not /merge"},
		{"link", "[the docs](https://x.test/a)", "[the docs](<https://x.test/a>)", "[the docs](<https://x.test/a>)", "the docs (https://x.test/a)"},
		{"address", "see https://x.test/a_b_c.", "see <https://x.test/a_b_c>.", "see https://x.test/a_b_c.", "see https://x.test/a_b_c."},
		{"address in brackets", "(https://x.test/a)", "(<https://x.test/a>)", "(https://x.test/a)", "(https://x.test/a)"},
		{"image", "![cat](https://x.test/c.png?q=secret)", "[cat](<https://x.test/c.png?q=secret>)", "[cat](<https://x.test/c.png?q=secret>)", "cat (https://x.test/c.png?q=secret)"},
		{"link that is none", "[x](javascript:alert(1))", "x (javascript:alert(1))", "x (javascript:alert(1))", "x (javascript:alert(1))"},
		{"html", "a<script>a</script> &lt;b> &amp;amp;", "a\\<" + z + "script>a\\<" + z + "/script> \\<" + z + "b> \\&amp;", "a\\<script>a\\</script> \\<b> \\&amp;", "a<script>a</script> <b> &amp;"},
		{"list", "1. a\n2. b\n   - c\n3. e", "1. a\n2. b\n   - c\n3. e", "1. a\n2. b\n   - c\n3. e", "1. a\n2. b\n     - c\n3. e"},
		{"fence", "```go\na := 1 // @here <b>\n```", "```go\na := 1 // @here <b>\n```", "```go\na := 1 // @here <b>\n```", "a := 1 // @here <b>"},
		{"name of a fence", "```go`x @here\na\n```", "```\na\n```", "```\na\n```", "a"},
		{"tick in code", "``a`b``", "`aˋb`", "`aˋb`", "a`b"},
		{"table", "| a | b |\n|:--|--:|\n| **c** | `d\\|e` |", "```\na | b\n--- | ---\n```", "| a | b |\n| :-- | --: |\n| **c** | `d\\|e` |", "a | b"},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb", "a\n\n---\n\nb", "a\n\n———\n\nb"},
		{"quote", "> a\n>\n> b", "> a\n\n> b", "> a\n\n> b", "> a\n\n> b"},
		{"math", "$x$", "$x$", "\\$x\\$", "$x$"},
	} {
		for _, d := range []struct {
			name string
			d    Dialect
			want string
		}{{"discord", Discord, tc.discord}, {"gfm", GFM, tc.gfm}, {"plain", Plain, tc.plain}} {
			if tc.name == "table" && d.name != "gfm" {
				continue // as in Slack
			}
			if tc.name == "name of a fence" {
				continue // not a fence in Markdown
			}
			if diff := cmp.Diff([]string{d.want}, d.d.Compose(tc.in)); diff != "" {
				t.Errorf("%s in %s: %s", tc.name, d.name, diff)
			}
		}
	}
}

// In a text that a stranger may have steered nothing is a link.
func TestWary(t *testing.T) {
	t.Parallel()
	in := "[docs](https://evil.example/?q=secret) https://evil.example/b <https://evil.example> ![i](https://evil.example/c.png) www.evil.example [Https://evil.example](HTTPS://evil.example)\n\n" +
		"| a |\n|---|\n| [x](https://evil.example) |\n\n`https://evil.example`"
	for name, d := range map[string]Dialect{"slack": Slack, "discord": Discord, "gfm": GFM, "plain": Plain} {
		in := in
		if name == "plain" { // has no marks that would keep an address in code from being a link
			in = strings.TrimSuffix(in, "`https://evil.example`")
		}
		parts := d.For(chat.Outsider).Compose(in)
		all := strings.Join(parts, "\n")
		shown := strings.NewReplacer("`https://evil.example`", "", "\\", "").Replace(all)
		if strings.Contains(shown, "://") || strings.Contains(strings.ToLower(shown), "www.") {
			t.Errorf("%s: %q holds a link", name, all)
		}
		if n := strings.Count(shown, "evil.example") + strings.Count(shown, "[.]evil"); n < 6 {
			t.Errorf("%s: %q does not show all addresses (%d)", name, all, n)
		}
		if d := cmp.Diff([]string{"fine."}, d.For(chat.Outsider).Compose("fine.")); d != "" {
			t.Error(d)
		}
	}
}

// gfm reads a text as GitHub would.
func gfm(s string) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(gtext.NewReader([]byte(s)))
}

// spelled is what a reader sees: the letters of a text, in order.
func spelled(parts ...string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(strings.Join(parts, "")))
}

// randomText makes Markdown of pieces whose letters are shown in every dialect.
func randomText(rnd *rand.Rand) string {
	pieces := []string{
		"word", "**bold words here**", "_x_", "`code span`", "a&b<c", "漢字かな", "é", "snake_case_name", "2 * 3 * 4", "a*b*c", "@name", "#12", "fixes #3", "|", "~x~", "$5 and $6",
		"\n", "\n\n", "\n\n- item", "\n\n  - inner", "\n\n1. one", "\n\n> quote", "\n\n```\ncode line\nother\n```\n\n", " ", " ", "**(x)**y", "[not a link]", "\\*", "1\\.", "\n\n## heading ",
	}
	var in strings.Builder
	for range rnd.IntN(60) {
		in.WriteString(pieces[rnd.IntN(len(pieces))])
		in.WriteByte(' ')
	}
	return in.String()
}

// Whatever the limit and the dialect, the parts say in order what the text says,
// and none is too large.
func TestPartsRejoined(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		in := randomText(rnd)
		for name, d := range map[string]Dialect{"slack": Slack, "discord": Discord, "gfm": GFM, "plain": Plain, "wary": GFM.For(chat.Outsider)} {
			d.limit = 64 + rnd.IntN(400)
			parts := d.Compose(in)
			want := in
			if !strings.HasPrefix(name, "slack") {
				want = strings.ReplaceAll(in, "&amp;", "")
			}
			if diff := cmp.Diff(spelled(want), spelled(parts...)); diff != "" {
				t.Fatalf("%s: %q in %d: %q: %s", name, in, d.limit, parts, diff)
			}
			for _, p := range parts {
				if d.size(p) > d.limit {
					t.Fatalf("%s: %q: part of %d, limit %d", name, in, d.size(p), d.limit)
				}
			}
		}
	}
}

// What is rendered for GitHub reads there as the source would, letter by letter
// with the same emphasis, and no part holds a live mention, tag or picture.
func TestGFMReadsAsTheSource(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		in := randomText(rnd)
		whole := GFM.Compose(in)
		if len(whole) == 0 {
			continue
		}
		if len(whole) > 1 {
			t.Fatalf("%d parts", len(whole))
		}
		if diff := cmp.Diff(styled(t, in), styled(t, whole[0])); diff != "" {
			t.Fatalf("%q became %q: %s", in, whole[0], diff)
		}
	}
}

// styled is the letters of a text with the emphasis and kind of block of each.
func styled(t *testing.T, s string) []string {
	var out []string
	src := []byte(s)
	err := ast.Walk(gfm(s), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var text string
		switch n := n.(type) {
		case *ast.Text:
			text = string(n.Segment.Value(src))
		case *ast.String:
			text = string(n.Value)
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			text = string(n.Lines().Value(src))
		case *ast.AutoLink:
			text = string(n.Label(src))
		}
		if text = spelled(text); text == "" {
			return ast.WalkContinue, nil
		}
		marks := ""
		for p := n; p != nil; p = p.Parent() {
			switch p := p.(type) {
			case *ast.Emphasis:
				marks += map[int]string{1: "i", 2: "b"}[p.Level]
			case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock:
				marks += "c"
			case *east.Strikethrough:
				marks += "s"
			case *ast.Heading:
				marks += "h"
			case *ast.Blockquote:
				marks += "q"
			}
		}
		if k := len(out) - 1; k >= 0 && strings.HasPrefix(out[k], marks+" ") {
			out[k] += text
		} else {
			out = append(out, marks+" "+text)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func FuzzGFM(f *testing.F) {
	for _, s := range []string{"@user", "\\@user", "a\n/merge", "![x](https://a.test)", "<img src=x>", "&#64;user", "**@user**", "`@user`", "|@user|\n|-|\n|![x](https://a.test)|", "[@user](https://a.test)", "_@user_", "@_user_"} {
		f.Add(s, uint16(0))
	}
	f.Fuzz(func(t *testing.T, in string, n uint16) {
		d := GFM
		d.limit = 240 + int(n)%4000
		for i, p := range d.Compose(in) {
			if d.size(p) > d.limit || blank(p) || !utf8.ValidString(p) {
				t.Errorf("part %d is too large, blank or not UTF-8: %q", i, p)
			}
			src := []byte(p)
			_ = ast.Walk(gfm(p), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				if !entering {
					return ast.WalkContinue, nil
				}
				switch n := n.(type) {
				case *ast.Image:
					t.Errorf("part %d has a picture: %q", i, p)
				case *ast.HTMLBlock:
					t.Errorf("part %d has tags: %q", i, p)
				case *ast.RawHTML:
					if s := string(n.Segments.Value(src)); s != GFM.joint {
						t.Errorf("part %d has a tag %q: %q", i, s, p)
					}
				case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock:
					return ast.WalkSkipChildren, nil
				case *ast.Text:
					s := string(n.Segment.Value(src))
					for j, r := range s {
						before, _ := utf8.DecodeLastRuneInString(p[:n.Segment.Start+j])
						after, _ := utf8.DecodeRuneInString(s[j+utf8.RuneLen(r):])
						if r == '@' && !plainLetter(before) && after < utf8.RuneSelf && plainLetter(after) {
							t.Errorf("part %d has a mention %q: %q", i, s, p)
						}
					}
				}
				return ast.WalkContinue, nil
			})
		}
	})
}

// A long answer is read in sections; what stands in one block stays in one.
func TestSections(t *testing.T) {
	t.Parallel()
	fence := "```go\n" + strings.Repeat("line of code\n\n", 1500) + "```\n"
	in := strings.Repeat("A paragraph with **bold** words.\n\n", 800) + fence + strings.Repeat("- item\n", 4000) + "\n\nThe **end**."
	got := sections(in)
	if diff := cmp.Diff(in, strings.Join(got, "")); diff != "" || len(got) < 3 {
		t.Fatalf("%d sections: %s", len(got), diff)
	}
	for i, s := range got {
		if n := strings.Count(s, "```"); n%2 != 0 || len(s) > maxBytes {
			t.Errorf("section %d of %d bytes has %d fences", i, len(s), n)
		}
	}
	parts := Slack.Compose(in)
	if last := parts[len(parts)-1]; !strings.HasSuffix(last, "The *end*.") {
		t.Errorf("the end of a long text is %q", last)
	}
	if all := strings.Join(parts, "\n"); strings.Contains(all, "**") || len(parts) > 40 {
		t.Errorf("%d parts, or marks as written", len(parts))
	}
}

func BenchmarkLongAnswer(b *testing.B) {
	in := strings.Repeat("Some words with **emphasis**, `code` and [a link](https://x.test/a).\n\n- one\n- two\n\n```go\nx := f(\"<&>\")\n```\n\n", 60_000/110+1)
	for name, d := range map[string]Dialect{"slack": Slack, "discord": Discord, "gfm": GFM} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(d.Compose(in)) == 0 {
					b.Fatal("nothing")
				}
			}
		})
	}
}
