package stripe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An answer of the API.
type answer struct {
	status   int
	body     any
	replayed bool
	at       time.Time // when its key was used first
	path     string
	form     map[string]string
}

func (a answer) write(rw http.ResponseWriter) {
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Request-Id", "req_fake")
	if a.replayed {
		rw.Header().Set("Idempotent-Replayed", "true")
	}
	rw.WriteHeader(a.status)
	_ = json.NewEncoder(rw).Encode(a.body) // a caller that went away needs no answer
}

// frozen is the answer as it is now, whatever becomes of the objects in it.
func (a answer) frozen() answer {
	b, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // a test kept an object that is no JSON
	}
	a.body = json.RawMessage(b)
	return a
}

func fault(status int, kind, code, message string) answer {
	e := Object{"type": kind, "message": message}
	if code != "" {
		e["code"] = code
	}
	return answer{status: status, body: Object{"error": e}}
}

func invalid(param, message string) answer {
	a := fault(http.StatusBadRequest, "invalid_request_error", "", message)
	if param != "" {
		a.body.(Object)["error"].(Object)["param"] = param
	}
	return a
}

func missing(id string) answer {
	return fault(http.StatusNotFound, "invalid_request_error", "resource_missing", "No such object: '"+id+"'")
}

// kinds are the resources by their path.
var kinds = map[string]string{
	"customers": "customer", "subscriptions": "subscription", "invoices": "invoice", "payment_intents": "payment_intent", "charges": "charge",
	"disputes": "dispute", "refunds": "refund", "payouts": "payout", "checkout/sessions": "checkout.session", "billing/meters": "billing.meter",
}

// filters are the parameters that a list takes beside limit, starting_after and created.
var filters = map[string][]string{
	"customers": {"email"}, "subscriptions": {"customer", "status", "price"}, "invoices": {"customer", "subscription", "status"},
	"payment_intents": {"customer"}, "charges": {"customer", "payment_intent"}, "disputes": {"charge", "payment_intent"},
	"refunds": {"charge", "payment_intent"}, "payouts": {"status"}, "checkout/sessions": {"customer", "payment_intent", "subscription", "status"},
}

func (s *Server) denied(resource string) bool { return slices.Contains(s.opt.Denied, resource) }

func forbidden(resource string) answer {
	return fault(http.StatusForbidden, "invalid_request_error", "", "The provided key does not have the required permissions for this endpoint ("+resource+").")
}

// split cuts "/v1/checkout/sessions/cs_1/expire" into the resource, an id and what follows.
func split(path string) (resource, id, verb string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return "", "", "", false
	}
	for _, r := range append([]string{"events"}, keys(kinds)...) {
		if rest == r {
			return r, "", "", true
		}
		if more, ok := strings.CutPrefix(rest, r+"/"); ok {
			id, verb, _ = strings.Cut(more, "/")
			return r, id, verb, true
		}
	}
	return "", "", "", false
}

func keys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

func (s *Server) read(c Call) answer {
	resource, id, verb, ok := split(c.Path)
	switch {
	case !ok || verb != "":
		return fault(http.StatusNotFound, "invalid_request_error", "", "Unrecognized request URL (GET: "+c.Path+").")
	case s.denied(resource):
		return forbidden(resource)
	case resource == "events":
		return s.listEvents(c)
	case id == "search":
		return s.search(c, resource)
	case id != "":
		if o, ok := s.objects[c.Account][id]; ok && o["object"] == kinds[resource] {
			return answer{status: http.StatusOK, body: o}
		}
		return missing(id)
	}
	return s.list(c, resource)
}

// list is newest first, as Stripe lists.
func (s *Server) list(c Call, resource string) answer {
	for k := range c.Form {
		if k != "limit" && k != "starting_after" && !slices.Contains(filters[resource], k) {
			return invalid(k, "Received unknown parameter: "+k)
		}
	}
	var all []Object
	for _, id := range slices.Backward(s.order) {
		o, ok := s.objects[c.Account][id]
		if !ok || o["object"] != kinds[resource] {
			continue
		}
		fits := true
		for _, f := range filters[resource] {
			fits = fits && (c.Form[f] == "" || fmt.Sprint(o[f]) == c.Form[f])
		}
		if fits {
			all = append(all, o)
		}
	}
	return page(c, all)
}

// search knows queries of the form field:'value'.
func (s *Server) search(c Call, resource string) answer {
	field, value, ok := strings.Cut(c.Form["query"], ":")
	if !ok || strings.Trim(value, `'"`) == value {
		return invalid("query", "We were unable to parse your search query.")
	}
	var all []Object
	for _, id := range slices.Backward(s.order) {
		if o, ok := s.objects[c.Account][id]; ok && o["object"] == kinds[resource] && fmt.Sprint(o[field]) == strings.Trim(value, `'"`) {
			all = append(all, o)
		}
	}
	a := page(c, all)
	if list, ok := a.body.(Object); ok && a.status == http.StatusOK {
		list["object"] = "search_result"
	}
	return a
}

func (s *Server) listEvents(c Call) answer {
	since, _ := strconv.ParseInt(c.Form["created[gte]"], 10, 64)
	var all []Object
	for _, e := range slices.Backward(s.events) {
		if e.account != c.Account || e.delivered && c.Form["delivery_success"] == "false" || e.object["created"].(int64) < since {
			continue
		}
		all = append(all, e.object)
	}
	return page(c, all)
}

func page(c Call, all []Object) answer {
	limit := 10
	if v := c.Form["limit"]; v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 100 {
			return invalid("limit", "This value must be between 1 and 100.")
		}
		limit = n
	}
	if after := c.Form["starting_after"]; after != "" {
		i := slices.IndexFunc(all, func(o Object) bool { return o["id"] == after })
		if i < 0 {
			return missing(after)
		}
		all = all[i+1:]
	}
	more := len(all) > limit
	return answer{status: http.StatusOK, body: Object{"object": "list", "url": c.Path, "has_more": more, "data": append([]Object{}, all[:min(limit, len(all))]...)}}
}

// change does what a write asks for.
func (s *Server) change(c Call) answer {
	resource, id, verb, ok := split(c.Path)
	switch {
	case !ok:
		return fault(http.StatusNotFound, "invalid_request_error", "", "Unrecognized request URL ("+c.Method+": "+c.Path+").")
	case s.denied(resource):
		return forbidden(resource)
	case resource == "refunds" && id == "" && c.Method == http.MethodPost:
		return s.refund(c)
	}
	o, ok := s.objects[c.Account][id]
	if !ok || o["object"] != kinds[resource] {
		return missing(id)
	}
	switch {
	case resource == "invoices" && verb == "void" && c.Method == http.MethodPost:
		if o["status"] != "open" {
			return invalid("", "You can only pass in open invoices. This invoice isn't open.")
		}
		o["status"] = "void"
	case resource == "subscriptions" && verb == "" && c.Method == http.MethodDelete:
		if o["status"] == "canceled" {
			return missing(id)
		}
		o["status"] = "canceled"
	case verb == "" && c.Method == http.MethodPost:
		if a := update(o, c.Form); a.status != http.StatusOK {
			return a
		}
	default:
		return fault(http.StatusNotFound, "invalid_request_error", "", "Unrecognized request URL ("+c.Method+": "+c.Path+").")
	}
	s.writes = append(s.writes, Write{c, id})
	return answer{status: http.StatusOK, body: o}
}

func (s *Server) refund(c Call) answer {
	of, name := c.Form["payment_intent"], "payment_intent"
	if of == "" {
		of, name = c.Form["charge"], "charge"
	}
	paid, ok := s.objects[c.Account][of]
	if !ok {
		return missing(of)
	}
	left, _ := paid["amount"].(int)
	for _, o := range s.objects[c.Account] {
		if o["object"] == "refund" && o[name] == of {
			left -= o["amount"].(int)
		}
	}
	amount := left
	if v := c.Form["amount"]; v != "" {
		amount, _ = strconv.Atoi(v)
	}
	if amount <= 0 || amount > left {
		return invalid("amount", fmt.Sprintf("Refund amount (%d) is greater than unrefunded amount on charge (%d)", amount, left))
	}
	s.last++
	o := Object{"id": fmt.Sprintf("re_fake%d", s.last), "object": "refund", "amount": amount, "currency": paid["currency"], name: of, "status": "succeeded", "created": s.opt.Clock().Unix()}
	s.put(c.Account, o)
	if a := update(o, without(c.Form, "payment_intent", "charge", "amount", "reason")); a.status != http.StatusOK {
		return a
	}
	s.writes = append(s.writes, Write{c, fmt.Sprint(o["id"])})
	return answer{status: http.StatusOK, body: o}
}

func without(m map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}

// update sets metadata and the few fields that a gateway may change, within Stripe's limits.
func update(o Object, form map[string]string) answer {
	m, _ := o["metadata"].(map[string]any)
	for k, v := range form {
		name, isMeta := strings.CutPrefix(k, "metadata[")
		name = strings.TrimSuffix(name, "]")
		switch {
		case isMeta && len([]rune(name)) > 40:
			return invalid(k, "Metadata keys can be up to 40 characters long.")
		case isMeta && len([]rune(v)) > 500:
			return invalid(k, "Metadata values can have up to 500 characters.")
		case isMeta && v == "":
			delete(m, name)
		case isMeta:
			m[name] = v
		case k == "cancel_at_period_end":
			o[k] = v == "true"
		case k == "description":
			o[k] = v
		default:
			return invalid(k, "Received unknown parameter: "+k)
		}
	}
	if len(m) > 50 {
		return invalid("metadata", "You can have up to 50 metadata keys.")
	}
	return answer{status: http.StatusOK}
}
