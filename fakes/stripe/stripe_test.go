package stripe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// call makes an API call with the right key, unless the header says otherwise.
func call(t *testing.T, s *Server, method, path string, form map[string]string, header map[string]string) (int, map[string]any) {
	t.Helper()
	v := url.Values{}
	for k, a := range form {
		v.Set(k, a)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(v.Encode()))
	if method == http.MethodGet {
		r = httptest.NewRequest(method, path+"?"+v.Encode(), nil)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+s.Options().APIKey)
	r.Header.Set("Stripe-Version", "2024-06-20")
	for k, a := range header {
		r.Header.Set(k, a)
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	var out map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s %s: status %d, %v", method, path, rec.Code, err)
	}
	out["replayed"] = rec.Header().Get("Idempotent-Replayed")
	return rec.Code, out
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := New(Options{Accounts: []string{"acct_1"}, Denied: []string{"payouts"}})
	s.Put("", Object{"id": "in_1", "object": "invoice", "status": "paid"})
	s.Put("", Object{"id": "pi_1", "object": "payment_intent", "amount": 100, "currency": "eur"})
	for _, tc := range []struct {
		name, method, path string
		form, header       map[string]string
		status             int
		code               string
	}{
		{"good", "GET", "/v1/invoices/in_1", nil, nil, 200, ""},
		{"wrong key", "GET", "/v1/invoices/in_1", nil, map[string]string{"Authorization": "Bearer x"}, 401, ""},
		{"no version", "GET", "/v1/invoices/in_1", nil, map[string]string{"Stripe-Version": ""}, 400, ""},
		{"unknown account", "GET", "/v1/invoices/in_1", nil, map[string]string{"Stripe-Account": "acct_2"}, 403, "account_invalid"},
		{"another account's", "GET", "/v1/invoices/in_1", nil, map[string]string{"Stripe-Account": "acct_1"}, 404, "resource_missing"},
		{"another kind's", "GET", "/v1/customers/in_1", nil, nil, 404, "resource_missing"},
		{"no right", "GET", "/v1/payouts", nil, nil, 403, ""},
		{"no resource", "GET", "/v1/sandwiches", nil, nil, 404, ""},
		{"unknown parameter", "GET", "/v1/invoices", map[string]string{"color": "red"}, nil, 400, ""},
		{"too many", "GET", "/v1/invoices", map[string]string{"limit": "101"}, nil, 400, ""},
		{"odd search", "GET", "/v1/invoices/search", map[string]string{"query": "status=paid"}, nil, 400, ""},
		{"void what is paid", "POST", "/v1/invoices/in_1/void", nil, nil, 400, ""},
		{"refund too much", "POST", "/v1/refunds", map[string]string{"payment_intent": "pi_1", "amount": "101"}, nil, 400, ""},
		{"long note", "POST", "/v1/invoices/in_1", map[string]string{"metadata[a]": strings.Repeat("x", 501)}, nil, 400, ""},
		{"long key", "POST", "/v1/invoices/in_1", nil, map[string]string{"Idempotency-Key": strings.Repeat("k", 256)}, 400, ""},
	} {
		status, out := call(t, s, tc.method, tc.path, tc.form, tc.header)
		e, _ := out["error"].(map[string]any)
		if code, _ := e["code"].(string); status != tc.status || code != tc.code || (e == nil) != (status == 200) {
			t.Errorf("%s: %d %v, want %d %s", tc.name, status, out, tc.status, tc.code)
		}
	}
	if n := len(s.Writes()); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// A key is worth one effect for a day, with the same parameters only.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	now := time.Unix(1700000000, 0)
	s := New(Options{Clock: func() time.Time { return now }})
	s.Put("", Object{"id": "pi_1", "object": "payment_intent", "amount": 100, "currency": "eur"})
	key := map[string]string{"Idempotency-Key": "k"}
	form := map[string]string{"payment_intent": "pi_1", "amount": "10", "metadata[a]": "b"}
	_, first := call(t, s, "POST", "/v1/refunds", form, key)
	_, second := call(t, s, "POST", "/v1/refunds", form, key)
	if first["id"] == nil || first["id"] != second["id"] || first["replayed"] != "" || second["replayed"] != "true" || len(s.Writes()) != 1 {
		t.Errorf("first %v, second %v, %d writes", first, second, len(s.Writes()))
	}
	if status, out := call(t, s, "POST", "/v1/refunds", map[string]string{"payment_intent": "pi_1", "amount": "11"}, key); status != 400 || out["error"].(map[string]any)["type"] != "idempotency_error" {
		t.Errorf("other parameters: %d %v", status, out)
	}
	now = now.Add(25 * time.Hour)
	if _, third := call(t, s, "POST", "/v1/refunds", form, key); third["id"] == first["id"] || len(s.Writes()) != 2 {
		t.Errorf("after a day: %v", third)
	}
	if _, list := call(t, s, "GET", "/v1/refunds", map[string]string{"payment_intent": "pi_1", "limit": "1"}, nil); list["has_more"] != true {
		t.Errorf("list: %v", list)
	}
}
