package stripe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// What happened, to make an event of. Only Type and Object are needed.
type What struct {
	Type    string // "invoice.payment_failed"
	Object  Object // as it is then; kept as well if it has an id
	Before  Object // previous_attributes
	Account string // a connected account
	Version string // api_version, "2024-06-20" if empty
	Key     string // idempotency key of the call that caused it
	ID      string // to deliver one event as another: made if empty
	Created int64  // Unix seconds, now if 0
	Missed  bool   // no webhook of it was delivered; only the list of events tells of it
	Thin    bool   // a thin event: what it is about must be read
}

// A Delivery is one signed webhook.
type Delivery struct {
	EventID string
	Header  http.Header
	Body    []byte
}

// Request makes the HTTP request; each call makes a fresh one.
func (d Delivery) Request(url string) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	r.Header = d.Header.Clone()
	return r, nil
}

// Event lets something happen and returns the webhook of it.
func (s *Server) Event(w What) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	if w.ID == "" {
		w.ID = fmt.Sprintf("evt_fake%d", s.last)
	}
	if w.Version == "" {
		w.Version = "2024-06-20"
	}
	if w.Created == 0 {
		w.Created = s.opt.Clock().Unix()
	}
	if w.Object["id"] != nil {
		s.put(w.Account, Object(clone(w.Object)))
	}
	if w.Thin {
		return s.thin(w)
	}
	data := Object{"object": clone(w.Object)}
	if w.Before != nil {
		data["previous_attributes"] = clone(w.Before)
	}
	var key any
	if w.Key != "" {
		key = w.Key
	}
	e := Object{
		"id": w.ID, "object": "event", "api_version": w.Version, "created": w.Created, "type": w.Type, "livemode": s.opt.Live, "pending_webhooks": 1,
		"data": data, "request": Object{"id": nil, "idempotency_key": key},
	}
	s.events = append(s.events, stored{w.Account, e, !w.Missed})
	sent := Object(clone(e))
	if w.Account != "" {
		sent["account"] = w.Account
	}
	return s.delivery(w.ID, sent)
}

// thin makes a thin event, which the list of events does not have.
func (s *Server) thin(w What) Delivery {
	kind, id := fmt.Sprint(w.Object["object"]), fmt.Sprint(w.Object["id"])
	path := ""
	for p, k := range kinds {
		if k == kind {
			path = "/v1/" + p + "/" + id
		}
	}
	var context any
	if w.Account != "" {
		context = w.Account
	}
	return s.delivery(w.ID, Object{
		"id": w.ID, "object": "v2.core.event", "type": w.Type, "created": s.opt.Clock().UTC().Format("2006-01-02T15:04:05.000Z"), "livemode": s.opt.Live,
		"context": context, "reason": nil, "related_object": Object{"id": id, "type": kind, "url": path},
	})
}

func (s *Server) delivery(id string, e Object) Delivery {
	body, err := json.MarshalIndent(e, "", "  ") // as Stripe sends them
	if err != nil {
		panic(err) // a test gave an object that is no JSON
	}
	d := s.Sign(body)
	d.EventID = id
	return d
}

// Sign makes a delivery of any body, signed now.
func (s *Server) Sign(body []byte) Delivery {
	h := http.Header{}
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	stamp := strconv.FormatInt(s.opt.Clock().Unix(), 10)
	h.Set("Stripe-Signature", "t="+stamp+",v1="+Signature(s.opt.Secret, stamp, body)+",v0="+Signature("v0", stamp, body))
	return Delivery{Header: h, Body: body}
}

// Again is a retry of a delivery: the same body, signed now.
func (s *Server) Again(d Delivery) Delivery {
	r := s.Sign(d.Body)
	r.EventID = d.EventID
	return r
}

// Signature is the v1 signature of a body.
func Signature(secret, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// clone copies an object deeply, and its numbers become those of JSON, but for
// whole ones that a test wrote as int.
func clone(o Object) map[string]any {
	out := map[string]any{}
	for k, v := range o {
		switch v := v.(type) {
		case Object:
			out[k] = clone(v)
		case map[string]any:
			out[k] = clone(v)
		default:
			out[k] = v
		}
	}
	return out
}
