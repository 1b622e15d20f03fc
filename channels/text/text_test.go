package text

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func limited(n int) Dialect {
	d := Slack
	d.limit = n
	return d
}

func TestSlack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "Hello there.\nSecond line", "Hello there.\nSecond line"},
		{"escapes", "a & b < c > d", "a &amp; b &lt; c &gt; d"},
		{"entities once", `&amp;lt; \&amp; &copy;`, "&amp;lt; &amp;amp; ©"},
		{"mentions", "<!channel> <@U0BOSS> <#C01|x> @here <!subteam^S1>", "&lt;!channel&gt; &lt;@U0BOSS&gt; &lt;#C01|x&gt; @here &lt;!subteam^S1&gt;"},
		{"script", "`<!channel>` & <script>", "`&lt;!channel&gt;` &amp; &lt;script&gt;"},
		{"emphasis", "**bold** *it* ~~gone~~ ***both***", "*bold* _it_ ~gone~ *_both_*"},
		{"nested", "**bold _both_ bold**", "*bold* *_both_* *bold*"},
		{"bold before a letter", "**작성자**는 a**b**c", "*작성자*\u200b는 a\u200b*b*\u200bc"},
		{"bold before a comma", "**a**, b", "*a*, b"},
		{"code", "run `a  b` now", "run `a  b` now"},
		{"backslash in code", "`C:\\` is a path, **not** code", "`C:\\` is a path, *not* code"},
		{"heading", "# A **title**\n\ntext", "*A title*\n\ntext"},
		{"link", "[the *docs*](https://x.test/a?b=1&c=2|3)", "<https://x.test/a?b=1&amp;c=2%7C3|the docs>"},
		{"autolink", "<https://x.test/?a=1&b=2> <me@x.test>", "<https://x.test/?a=1&amp;b=2> <mailto:me@x.test|me@x.test>"},
		{"script link", "[click](javascript:alert(1))", "click (javascript:alert(1))"},
		{"hidden script link", "[click](java&#115;cript&#58;x)", "click (javascript:x)"},
		{"relative link", "[click](docs/a.md)", "click (docs/a.md)"},
		{"link label that looks like a token", "[<!here>](https://x.test)", "<https://x.test|&lt;!here&gt;>"},
		{"link target that looks like a token", "[a](<https://x.test/><!here>)", "[a](<https://x.test/>&lt;!here&gt;)"},
		{"image", "see ![a cat](https://x.test/c.png) and ![](https://x.test/d.png)", "see <https://x.test/c.png|a cat> and <https://x.test/d.png|image>"},
		{"html", "<div onclick=x>\nhi\n</div>", "&lt;div onclick=x&gt;\nhi\n&lt;/div&gt;"},
		{"list", "1. a\n2. b\n   - c\n   - d\n3. e", "1. a\n2. b\n     • c\n     • d\n3. e"},
		{"loose list", "- a\n\n- b", "• a\n\n• b"},
		{"tasks", "- [x] done\n- [ ] open", "• ☑ done\n• ☐ open"},
		{"quote", "> a\n> b\n>\n> c", "> a\n> b\n\n> c"},
		{"fence", "```go\na := \"<\" // ``\n  b\n```", "```\na := \"&lt;\" // ``\n  b\n```"},
		{"fence in a fence", "~~~\n```\n~~~", "```\n`\u200b`\u200b`\n```"},
		{"table", "| a | bb |\n|---|---|\n| **ccc** | d |", "```\na   | bb\n--- | --\nccc | d\n```"},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb"},
		{"link in a table", "|a|\n|-|\n|[b](https://x.test)|", "```\na\n------------------\nb (https://x.test)\n```"},
		{"image in a link", "[![build](https://x.test/b.svg)](https://x.test/ci)", "<https://x.test/ci|build>"},
		{"address in the name of an image", "![see <https://x.test/a>](https://x.test/b)", "<https://x.test/b|see https://x.test/a>"},
		{"link that shows another address", "[https://bank.example/login](https://evil.example/x)", "https://bank.example/login (<https://evil.example/x>)"},
		{"bold link that shows another host", "**[Bank.example](https://evil.example)**", "*Bank.example (<https://evil.example>)*"},
		{"image that shows another address", "![https://bank.example](https://evil.example)", "https://bank.example (<https://evil.example>)"},
		{"definitions only", "[a]: https://x.test", "[a]: https://x.test"},
		{"line ends", "a\r\nb  \nc", "a\nb\nc"},
		{"broken", "a\xffb\x00", "a\uFFFDb\uFFFD"},
		{"setext", "Title\n===", "*Title*"},
		{"comment", "<!-- c -->", "&lt;!-- c --&gt;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := Slack.Compose(tc.in)
			if d := cmp.Diff([]string{tc.want}, got); d != "" {
				t.Errorf("Compose(%q): %s", tc.in, d)
			}
		})
	}
	for _, in := range []string{"", " \n\t", "\u200b", "\ufeff \u00a0"} {
		if got := Slack.Compose(in); len(got) != 0 {
			t.Errorf("Compose(%q) = %q, want nothing", in, got)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		limit int
		in    string
		want  []string
	}{
		{"paragraphs whole", 20, "aaa aaa\n\nbbb bbb\n\nccc ccc", []string{"aaa aaa\n\nbbb bbb", "ccc ccc"}},
		{"words", 12, "aaa bbb ccc ddd eee", []string{"aaa bbb ccc", "ddd eee"}},
		{"bold reopened", 10, "**aaa bbb ccc**", []string{"*aaa bbb*", "*ccc*"}},
		{"entity whole", 8, "aaaa&bbbb", []string{"aaaa", "&amp;bbb", "b"}},
		{"long word", 4, "abcdefghij", []string{"abcd", "efgh", "ij"}},
		{"graphemes", 12, "👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧漢", []string{"👩‍👩‍👧👩‍👩‍👧", "👩‍👩‍👧漢"}},
		{"fence reopened", 20, "```sh\naaaa\nbbbb\ncccc\ndddd\n```", []string{"```\naaaa\nbbbb\n```", "```\ncccc\ndddd\n```"}},
		{"long line in a fence", 16, "```\naaaaaaaaaaaa\n```", []string{"```\naaaaaaaa\n```", "```\naaaa\n```"}},
		{
			"table head repeated", 48, "|h|i|\n|-|-|\n|1|2|\n|3|4|\n|5|6|\n|7|8|\n|9|0|\n|a|b|",
			[]string{"```\nh | i\n- | -\n1 | 2\n3 | 4\n5 | 6\n7 | 8\n```", "```\nh | i\n- | -\n9 | 0\na | b\n```"},
		},
		{"quote goes on", 16, "> aaa bbb ccc ddd eee", []string{"> aaa bbb ccc", "> ddd eee"}},
		{"long link spelled out", 40, "[label](https://x.test/aaaaaaaa)", []string{"label (https://x.test/aaaaaaaa)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := limited(tc.limit).Compose(tc.in)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A reply of 15,000 characters with a fence over every cut, and a fence whose
// info string alone is half a message.
func TestLongReplies(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"fence":       strings.Repeat("word ", 600) + "\n\n```go\n" + strings.Repeat("x := f(\"<&>\")\n", 900) + "```\n" + strings.Repeat("tail ", 100),
		"info string": "```" + strings.Repeat("i", 1900) + "\n" + strings.Repeat("line\n", 1200) + "```",
	} {
		parts := Slack.Compose(in)
		if len(parts) < 2 || len(parts) > 8 {
			t.Errorf("%s: %d parts", name, len(parts))
		}
		for i, p := range parts {
			if n := utf8.RuneCountInString(p); n > 3500 {
				t.Errorf("%s: part %d has %d characters", name, i, n)
			}
			if strings.Count(p, "```")%2 != 0 {
				t.Errorf("%s: part %d has an open fence", name, i)
			}
		}
	}
}

// A text too long to be read as Markdown is shown as written, and quickly.
func TestTooLong(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("[a](<!here> ", maxBytes)
	parts := Slack.Compose(in)
	if d := cmp.Diff(content(split(Slack, in, 0)[0].text), content(strings.Fields(parts[0])[0])); d != "" || strings.Contains(strings.Join(parts, ""), "<") {
		t.Error(d)
	}
}

// content is what a reader sees of parts of plain words.
func content(parts ...string) string {
	s := "\n" + strings.Join(parts, "\n")
	return strings.NewReplacer("\u200b", "", "*", "", "_", "", "~", "", "`", "", "\n> ", "", "\n>", "", "• ", "",
		" ", "", "\n", "", "&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s)
}

// Whatever the limit, the parts say together what the whole says.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	pieces := []string{"word", "**bold words here**", "_x_", "`code span`", "a&b<c", "漢字かな", "👩‍👩‍👧", "[link](https://x.test/p)", "\n", "\n\n", "\n\n- item", "\n\n> quote", "\n\n```\ncode line\nother\n```\n\n", " ", " "}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var in strings.Builder
		for range rnd.IntN(60) {
			in.WriteString(pieces[rnd.IntN(len(pieces))])
			in.WriteByte(' ')
		}
		whole := limited(1 << 20).Compose(in.String())
		// Above twice the longest link, so that it stays one in both.
		parts := limited(64 + rnd.IntN(300)).Compose(in.String())
		if d := cmp.Diff(content(whole...), content(parts...)); d != "" {
			t.Fatalf("%q: %s", in.String(), d)
		}
	}
}

func TestGraphemes(t *testing.T) {
	t.Parallel()
	for _, g := range []string{"a", "é", "e\u0301", "👩‍👩‍👧", "👍🏽", "🇩🇪", "\r\n", "한", "\u1112\u1161\u11ab", "❤️", "\U0001F3F4\U000E0067\U000E0062\U000E007F"} {
		var got []string
		for s := range graphemes("x" + g + g + "y") {
			got = append(got, s)
		}
		if d := cmp.Diff([]string{"x", g, g, "y"}, got); d != "" {
			t.Errorf("%q: %s", g, d)
		}
	}
	n := 0
	for s := range graphemes("a" + strings.Repeat("\u0301", 1000)) {
		n++
		if utf8.RuneCountInString(s) > maxGrapheme {
			t.Errorf("grapheme of %d runes", utf8.RuneCountInString(s))
		}
	}
	if n < 1000/maxGrapheme {
		t.Errorf("%d graphemes", n)
	}
}

// The quick way and the long way agree.
func TestLiteral(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"a", "Hello, world: 1-2 (3).", "a\nb", "Line one,\nline two + more = 3."} {
		if !literal(in) {
			t.Errorf("literal(%q) = false", in)
		}
		if d := cmp.Diff(pack(Slack, parse(Slack, in)), Slack.Compose(in)); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

// A label that shows an address must lead there.
func TestMisleads(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		label, u string
		want     bool
	}{
		{"https://bank.example/login", "https://evil.example/x", true},
		{"bank.example", "https://evil.example/bank.example", true},
		{"Log in at (bank.example).", "https://evil.example", true},
		{"www.bank.example", "https://bank.example.evil.test", true},
		{"HTTPS://BANK.EXAMPLE", "https://evil.example", true},
		{"https:\\\\bank.example", "https://evil.example", true},
		{"//bank.example?a=b", "https://evil.example", true},
		{"https://bank.example@evil.example", "https://evil.example", true},
		{"https://localhost/x", "https://evil.example", true},
		{"bank\u3002example", "https://evil.example", true},
		{"bank.exam\u200bple", "https://evil.example", true},
		{"bank.example", "https://bank.example@evil.example", true},
		{"bänk.example", "https://evil.example", true},
		{"a@bank.example", "mailto:a@evil.example", true},
		{"mailto:a@bank.example", "https://evil.example", true},
		{"https://x.test/docs/readme.md", "https://x.test/docs/readme.md?plain=1", false},
		{"X.test:8080/a", "https://www.x.test:8080/b", false},
		{"https://x.test.", "https://x.test/#a", false},
		{"x.test", "mailto:a@x.test?subject=b.c", false},
		{"first.last@x.test", "mailto:first.last@x.test", false},
		{"the docs", "https://x.test", false},
		{"main.go:12", "https://x.test", false},
		{"v1.2.3, e.g. 4.5", "https://x.test", false},
		{"and so on...", "https://x.test", false},
		{"and/or", "https://x.test", false},
	} {
		if got := misleads(tc.label, tc.u); got != tc.want {
			t.Errorf("misleads(%q, %q) = %t", tc.label, tc.u, got)
		}
	}
}

func FuzzCompose(f *testing.F) {
	for _, s := range []string{
		"a <!channel> b", "[x](https://a.test/|<!here>)", "```\n<@U1>\n", "|a|b|\n|-|-|\n|<!here>|", "> > > - 1. x", "**a_b**c", "&#60;!here&#62;",
		"<https://a.test/<!here>", "![<@U1>](mailto:a@b)", "a\n===", "plain text here", strings.Repeat("> ", 50) + "x", strings.Repeat("1. ", 40) + "y", "\\<!here>",
	} {
		f.Add(s, uint16(0))
	}
	for _, s := range hostile(2 << 10) {
		f.Add(s, uint16(0))
	}
	f.Fuzz(func(t *testing.T, in string, n uint16) {
		d := limited(240 + int(n)%4000)
		parts := d.Compose(in)
		if most := partsLimit(d, in); len(parts) > most {
			t.Errorf("%d parts, want at most %d", len(parts), most)
		}
		for i, p := range parts {
			if got := d.size(p); got > d.limit {
				t.Errorf("part %d of %d has size %d, limit %d", i, len(parts), got, d.limit)
			}
			if blank(p) || !utf8.ValidString(p) {
				t.Errorf("part %d is blank or not UTF-8: %q", i, p)
			}
			for rest := p; ; {
				_, after, ok := strings.Cut(rest, "<")
				if !ok {
					break
				}
				if !strings.HasPrefix(strings.ToLower(after), "http") && !strings.HasPrefix(strings.ToLower(after), "mailto:") {
					t.Errorf("part %d holds a live token: %q", i, p)
				}
				rest = after
			}
		}
		if len(parts) == 0 && !blank(strings.ToValidUTF8(in, "\uFFFD")) {
			t.Errorf("nothing of %q", in)
		}
		if literal(in) {
			if diff := cmp.Diff(pack(d, parse(d, in)), parts); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func BenchmarkCompose(b *testing.B) {
	for name, in := range map[string]string{
		"plain": "I looked at it and the answer is this: all is well.",
		"rich":  "I **looked** at `it`:\n\n- one\n- two [link](https://x.test)\n\n```go\ncode\n```\n",
		"long":  strings.Repeat("Some words with **emphasis** and `code`.\n\n", 400),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(Slack.Compose(in)) == 0 {
					b.Fatal("nothing")
				}
			}
		})
	}
}

func ExampleDialect_Compose() {
	for _, part := range Slack.Compose("**Done.** See [the log](https://x.test/log) <!channel>") {
		fmt.Println(part)
	}
	// Output: *Done.* See <https://x.test/log|the log> &lt;!channel&gt;
}
