package slack

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

const mostTest = 1000

// What somebody attached is what is fetched, whatever kind of file it is.
func TestFetch(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	for _, tt := range []struct {
		name    string
		file    fake.File
		refused string
	}{
		{"image", fake.File{Name: "dot.png", MimeType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n...")}, ""},
		{"text", fake.File{Name: "log.txt", MimeType: "text/plain", Data: []byte("one\ntwo")}, ""},
		{"page that is a file", fake.File{Name: "page.html", MimeType: "text/html", Data: []byte("<!DOCTYPE html><html>mine</html>")}, ""},
		{"text that looks like a page", fake.File{Name: "page.txt", MimeType: "text/plain", Data: []byte("<html>mine</html>")}, ""},
		{"page to log in at", fake.File{Name: "dot.png", MimeType: "image/png", Data: []byte("x"), Hidden: true}, "log in"},
		{"page to log in at for a page", fake.File{Name: "page.html", MimeType: "text/html", Data: []byte("<html></html>"), Hidden: true}, "log in"},
		{"too large", fake.File{Name: "big.bin", MimeType: "application/octet-stream", Data: make([]byte, mostTest+1)}, "too large"},
		{"larger than was said", fake.File{Name: "lie.bin", MimeType: "application/octet-stream", Size: 1, Data: make([]byte, mostTest+1)}, "too large"},
		{"empty", fake.File{Name: "none", MimeType: "text/plain", Size: 1}, "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ev := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look", Files: []fake.File{tt.file}}))
			if len(ev.Files) != 1 {
				t.Fatalf("files of the event: %v", ev.Files)
			}
			got, err := c.Fetch(t.Context(), "T0FAKE", ev.Files[0], mostTest)
			if tt.refused != "" {
				if verdictOf(err) != channels.Rejected || !strings.Contains(err.Error(), tt.refused) || got.Data != nil {
					t.Errorf("%v, %d bytes; want a refusal with %q", err, len(got.Data), tt.refused)
				}
				return
			}
			want := chat.Attachment{Name: tt.file.Name, MediaType: tt.file.MimeType, Data: tt.file.Data}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// The token and the download stay with Slack's hosts: where files.info or a
// redirect points elsewhere, nothing is asked there.
func TestFetchIsPinned(t *testing.T) {
	t.Parallel()
	var strangers atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	t.Cleanup(stranger.Close)
	for _, tt := range []struct {
		name, url, redirect string
		want                channels.Verdict
	}{
		{"foreign host", stranger.URL + "/file", "", channels.Rejected},
		{"host that ends like slack", "https://notslack.com/file", "", channels.Rejected},
		{"slack without TLS", "http://files.slack.com/file", "", channels.Rejected},
		{"slack on another port", "https://files.slack.com:8443/file", "", channels.Rejected},
		{"name in front of the host", "https://files.slack.com@" + strings.TrimPrefix(stranger.URL, "http://"), "", channels.Rejected},
		{"no address", "://", "", channels.Rejected},
		{"redirect away", "API/file", stranger.URL + "/file", channels.Rejected},
		{"redirect without end", "API/file", "/file", channels.Rejected},
		{"redirect inside", "API/file", "/other", 255},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var srv *httptest.Server
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "files.info"):
					fmt.Fprintf(w, `{"ok":true,"file":{"id":"F1","name":"f","mimetype":"text/plain","size":2,"url_private_download":%q}}`, strings.Replace(tt.url, "API", srv.URL, 1))
				case r.URL.Path == "/file" && tt.redirect != "":
					http.Redirect(w, r, tt.redirect, http.StatusFound)
				default:
					fmt.Fprint(w, "hi")
				}
			}))
			defer srv.Close()
			c := newChannel(t, Options{SigningSecrets: []string{"s-secret"}, BotToken: "xoxb-1", APIURL: srv.URL + "/api"})
			got, err := c.Fetch(t.Context(), "T1", chat.File{ID: "F1"}, mostTest)
			if verdictOf(err) != tt.want || (err == nil) != (string(got.Data) == "hi") {
				t.Errorf("%v, %q; want %v", err, got.Data, tt.want)
			}
		})
	}
	t.Cleanup(func() {
		if n := strangers.Load(); n != 0 {
			t.Errorf("%d requests went to a foreign host", n)
		}
	})
}

// What Slack answers says whether trying again may help.
func TestFetchVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method string
		fault        fake.Fault
		want         channels.Verdict
	}{
		{"limited", "files.info", fake.Fault{Status: 429, RetryAfter: "3"}, channels.Limited},
		{"limited download", "download", fake.Fault{Status: 429, RetryAfter: "3"}, channels.Limited},
		{"no such file", "files.info", fake.Fault{Code: "file_not_found"}, channels.Rejected},
		{"scope", "files.info", fake.Fault{Code: "missing_scope"}, channels.Rejected},
		{"not allowed", "download", fake.Fault{Status: 403}, channels.Rejected},
		{"trouble", "download", fake.Fault{Status: 502}, channels.Unknown},
		{"cut", "download", fake.Fault{Lose: true}, channels.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, c := workspace(t, fake.Options{Hook: func(c fake.Call) fake.Fault {
				if c.Method == tt.method {
					return tt.fault
				}
				return fake.Fault{}
			}}, Access{})
			f := w.AddFile(fake.File{Name: "a", MimeType: "text/plain", Data: []byte("hi")})
			_, err := c.Fetch(t.Context(), "T0FAKE", chat.File{ID: f.ID}, mostTest)
			var se *channels.SendError
			if !errors.As(err, &se) || se.Verdict != tt.want || (tt.want == channels.Limited) != (se.RetryAfter > 0) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	for name, more := range map[string]string{"deleted": `"mode":"tombstone"`, "external": `"is_external":true`} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"ok":true,"file":{"id":"F1","url_private":"x",%s}}`, more)
		}))
		defer srv.Close()
		c := newChannel(t, Options{SigningSecrets: []string{"s-secret"}, BotToken: "xoxb-1", APIURL: srv.URL})
		if _, err := c.Fetch(t.Context(), "T1", chat.File{ID: "F1"}, mostTest); verdictOf(err) != channels.Rejected {
			t.Errorf("%s: %v", name, err)
		}
	}
}
