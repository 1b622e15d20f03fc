package discord

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Buckets are Discord's rate limits as its answers tell them: a request that its
// bucket has no room for is refused instead of made, since refusals by Discord
// are counted against the whole address.
type buckets struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex
	ids   map[string]string    // bucket by route; guarded by mu
	spent map[string]time.Time // when a bucket of a resource has room again; guarded by mu
}

// mostSpent is how many resources are remembered before those that have room
// again are forgotten.
const mostSpent = 1000

// everywhere is the resource of the limit over all routes.
const everywhere = "global"

func newBuckets(next http.RoundTripper, now func() time.Time) *buckets {
	if next == nil {
		next = http.DefaultTransport
	}
	return &buckets{next: next, now: now, ids: map[string]string{}, spent: map[string]time.Time{}}
}

// RoundTrip fails with a *limitedError for what is over a limit.
func (b *buckets) RoundTrip(r *http.Request) (*http.Response, error) {
	route, resource := routeOf(r)
	if wait := b.wait(route, resource); wait > 0 {
		if r.Body != nil {
			_ = r.Body.Close() // it was not read
		}
		return nil, &limitedError{wait}
	}
	res, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests {
		defer func() { _ = res.Body.Close() }() // it says no more
		return nil, &limitedError{b.refused(route, resource, res)}
	}
	b.note(route, resource, res.Header)
	for _, h := range [...]string{"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Reset-After", "X-Ratelimit-Global"} {
		res.Header.Del(h) // discordgo fails for one that is no number
	}
	res.Body = capped{io.LimitReader(res.Body, maxAnswerBytes), res.Body}
	return res, nil
}

// routeOf splits a request into what shares a bucket and the resource that has it
// for itself: a channel, a guild, a webhook with its token.
func routeOf(r *http.Request) (route, resource string) {
	parts := strings.Split(r.URL.Path, "/")
	for i, p := range parts {
		switch {
		case i > 0 && (parts[i-1] == "channels" || parts[i-1] == "guilds") && resource == "" && snowflake(p):
			resource, parts[i] = p, "."
		case i > 0 && parts[i-1] == "webhooks" && i+1 < len(parts):
			resource, parts[i], parts[i+1] = p+"/"+parts[i+1], ".", "."
		case i > 0 && parts[i-1] == "reactions", snowflake(p):
			parts[i] = "."
		}
	}
	return r.Method + " " + strings.Join(parts, "/"), resource
}

func (b *buckets) wait(route, resource string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	return max(b.spent[everywhere].Sub(now), b.spent[b.key(route, resource)].Sub(now))
}

// key names the bucket of a resource; mu is held.
func (b *buckets) key(route, resource string) string {
	if id := b.ids[route]; id != "" {
		route = id
	}
	return route + " " + resource
}

// note reads what an answer tells of its bucket.
func (b *buckets) note(route, resource string, h http.Header) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id := h.Get("X-Ratelimit-Bucket"); id != "" && len(b.ids) < mostSpent {
		b.ids[route] = id
	}
	if h.Get("X-Ratelimit-Remaining") == "0" {
		if after := seconds(h.Get("X-Ratelimit-Reset-After")); after > 0 {
			b.spend(b.key(route, resource), after)
		}
	}
}

// spend closes a bucket for a time; mu is held.
func (b *buckets) spend(key string, after time.Duration) {
	now := b.now()
	if len(b.spent) >= mostSpent {
		maps.DeleteFunc(b.spent, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if len(b.spent) < mostSpent { // else Discord says it itself
		b.spent[key] = now.Add(after)
	}
}

// refused reads how long Discord wants to be left alone.
func (b *buckets) refused(route, resource string, res *http.Response) time.Duration {
	var said struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	_ = json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&said) // a proxy's answer is no JSON
	after := seconds(strconv.FormatFloat(said.RetryAfter, 'f', -1, 64))
	if after <= 0 {
		after = seconds(res.Header.Get("Retry-After"))
	}
	if after <= 0 {
		after = defaultRetryAfter
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if said.Global || res.Header.Get("X-Ratelimit-Global") != "" {
		b.spend(everywhere, after)
	} else {
		b.spend(b.key(route, resource), after)
	}
	return after
}

// seconds reads a number of seconds, 0 if it is none or none to wait for.
func seconds(s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f <= 0 || f > 24*60*60 {
		return 0
	}
	return time.Duration(math.Ceil(f*1000)) * time.Millisecond
}

// A capped body ends early rather than fill the memory.
type capped struct {
	io.Reader
	io.Closer
}
