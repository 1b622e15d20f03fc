package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	fakeslack "github.com/heddlehq/heddle/fakes/slack"
)

// attach NAME MEDIA FILE|dot|hidden|SIZE: the next message brings a file: one of
// the script, an image of one pixel, one that the bot may not see, or so many
// bytes.
func cmdAttach(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "attach NAME MEDIA FILE|dot|hidden|SIZE")
	w, _ := in(ts)
	f := fakeslack.File{Name: args[0], MimeType: args[1]}
	size, err := strconv.Atoi(args[2])
	switch {
	case args[2] == "dot":
		f.Data = dot(ts)
	case args[2] == "hidden":
		f.Data, f.Hidden = []byte("secret"), true
	case err == nil:
		f.Data = bytes.Repeat([]byte("x"), size)
	default:
		f.Data = []byte(ts.ReadFile(args[2]))
	}
	w.files = append(w.files, f)
}

// attached takes the files of the next message.
func (w *world) attached() []fakeslack.File {
	files := w.files
	w.files = nil
	return files
}

// dot is an image.
func dot(ts *testscript.TestScript) []byte {
	var b bytes.Buffer
	m := image.NewRGBA(image.Rect(0, 0, 1, 1))
	m.Set(0, 0, color.RGBA{R: 200, A: 255})
	ts.Check(png.Encode(&b, m))
	return b.Bytes()
}

// called METHOD N: Slack's method was called N times.
func cmdCalled(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "called METHOD N")
	w, _ := in(ts)
	if n := w.slack.Calls()[args[0]]; strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s was called %d times, want %s", args[0], n, args[1])
	}
}

// sent-file N TITLE DATA: N posts came with files; the first file of the last
// matches.
func cmdSentFile(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "sent-file N TITLE DATA")
	w, _ := in(ts)
	var files []fakeslack.File
	for _, p := range w.slack.Posts() {
		if len(p.Files) > 0 {
			files = append(files, p.Files[0])
		}
	}
	if strconv.Itoa(len(files)) != args[0] {
		ts.Fatalf("%d posts came with files, want %s", len(files), args[0])
	}
	last := files[len(files)-1]
	if !regexp.MustCompile(args[1]).MatchString(last.Title) || !regexp.MustCompile(args[2]).Match(last.Data) {
		ts.Fatalf("the last file is %s: %q", last.Title, last.Data)
	}
}
