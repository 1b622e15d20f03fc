package ui

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Files of a message are stored before the message is, by what is in them, and
// the message declares them; a repeat is the same message.
func TestMessagesBringFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := []byte{0, 0xff, '\n'}
	body := fmt.Sprintf(`{"key":"k1","files":[{"name":"a b.bin","data":%q},{"name":"n.txt","media_type":"text/plain","data":"aGk="}]}`, base64.StdEncoding.EncodeToString(data))
	for _, status := range []string{"admitted", "duplicate"} {
		code, answer := post(w, "/agents/assistant/conversations/c1/messages", body)
		if code != http.StatusAccepted || !strings.Contains(answer, status) {
			t.Fatalf("%d %s, want %s", code, answer, status)
		}
	}
	thread := chat.Thread{Channel: Channel, Account: "assistant", Room: "c1"}
	v, err := w.store.Load(t.Context(), state.ConversationID("assistant", thread), 0)
	if err != nil || len(v.Inbox) != 1 {
		t.Fatalf("%d events wait, %v", len(v.Inbox), err)
	}
	files := v.Inbox[0].Event.Files
	want := []chat.File{{ID: files[0].ID, Name: "a b.bin", Bytes: 3}, {ID: files[1].ID, Name: "n.txt", MediaType: "text/plain", Bytes: 2}}
	if d := cmp.Diff(want, files); d != "" || files[0].ID == files[1].ID {
		t.Errorf("the event declares (-want +got):\n%s", d)
	}
	got, err := w.store.Value(t.Context(), state.FileSpace(thread), files[0].ID)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("stored: %q, %v", got, err)
	}
	if event, err := json.Marshal(v.Inbox[0].Event); err != nil || len(event) > 1000 {
		t.Errorf("the event takes %d bytes, %v", len(event), err)
	}
	if code, answer := post(w, "/agents/assistant/conversations/c1/messages", strings.Replace(body, "aGk=", "aG8=", 1)); code != http.StatusConflict {
		t.Errorf("another file under the same key: %d %s", code, answer)
	}
}

func post(w *world, path, body string) (int, string) {
	r := w.do("POST", "/api/v1"+path, body)
	return r.Code, r.Body.String()
}

// What is no file, and what is too much, is refused and not stored.
func TestMessagesWithWrongFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := strings.TrimSuffix(strings.Repeat(`{"name":"a","data":"aGk="},`, chat.MaxFiles+1), ",")
	big := base64.StdEncoding.EncodeToString(make([]byte, chat.MaxFileBytes+1))
	for _, tt := range []struct {
		name, files string
		code        int
	}{
		{"too many", many, http.StatusBadRequest},
		{"no name", `{"data":"aGk="}`, http.StatusBadRequest},
		{"a name with a line feed", `{"name":"a\nb","data":"aGk="}`, http.StatusBadRequest},
		{"a long name", `{"name":"` + strings.Repeat("a", 256) + `","data":"aGk="}`, http.StatusBadRequest},
		{"no data", `{"name":"a"}`, http.StatusBadRequest},
		{"data that are no base64", `{"name":"a","data":"%%"}`, http.StatusBadRequest},
		{"too large", `{"name":"a","data":"` + big + `"}`, http.StatusBadRequest},
		{"a body that is too large", `{"name":"a","data":"` + strings.Repeat("AAAA", maxMessage/4) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		code, answer := post(w, "/agents/assistant/conversations/c1/messages", `{"text":"look","files":[`+tt.files+`]}`)
		if code != tt.code {
			t.Errorf("%s: %d %s, want %d", tt.name, code, answer, tt.code)
		}
	}
	all, err := w.store.ListValues(t.Context(), state.FileSpace(chat.Thread{Channel: Channel, Account: "assistant", Room: "c1"}), "", 10)
	if err != nil || len(all) > 0 {
		t.Errorf("%d files are stored, %v", len(all), err)
	}
}
