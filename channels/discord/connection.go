package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/heddlehq/heddle/channels"
)

// The operations of the Gateway's frames.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

const (
	resumable  = 4000            // code of our closes: 1000 and 1001 would end the session
	writeTime  = 5 * time.Second // of one frame
	mostBytes  = 32 << 20        // of one frame: a guild with all its channels
	mostAtOnce = 256             // frames admitted together, and waiting
	saveEvery  = time.Second
	replyTime  = 4 * time.Second // of answering an interaction: after three Discord takes none
	repliesAt  = 16              // once
)

// A frame is one message of the Gateway.
type frame struct {
	Op   int             `json:"op"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
	Data json.RawMessage `json:"d"`
}

// A connection is one WebSocket. Its frames are read ahead and admitted in
// order; the heartbeats tell the last that was.
type connection struct {
	*Channel
	conn    *websocket.Conn
	waiting chan frame // read, not yet admitted
	seq     atomic.Int64
	acked   atomic.Bool // the last heartbeat

	live    func()         // to be called when the session is there
	since   time.Time      // when the session was there, zero before; of admit only
	saved   time.Time      // of admit only
	replies sync.WaitGroup // to interactions, on their way
	slots   chan struct{}

	write sync.Mutex // held while a frame is written
	once  sync.Once
	done  chan struct{} // closed when it is to end
	cause error         // why it ended; set before done is closed
}

func newConnection(c *Channel, conn *websocket.Conn, live func()) *connection {
	k := &connection{Channel: c, conn: conn, live: live, waiting: make(chan frame, mostAtOnce), slots: make(chan struct{}, repliesAt), done: make(chan struct{})}
	k.seq.Store(c.link.Seq)
	conn.SetReadLimit(mostBytes)
	// What would be echoed by default ends the session, if it is 1000 or 1001.
	conn.SetCloseHandler(func(int, string) error { return nil })
	return k
}

// serve reads and admits until the connection ends, and says why it did.
func (k *connection) serve(ctx context.Context, take channels.Take) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	defer k.end(nil) // if admit panics
	defer context.AfterFunc(ctx, func() { k.end(ctx.Err()) })()
	was := k.link
	beside.Go(func() {
		defer close(k.waiting)
		k.end(k.read(was, &beside))
	})
	if err := k.admit(ctx, take); err != nil {
		k.end(err)
	}
	<-k.done
	k.replies.Wait()
	return k.ended()
}

// end closes the connection, once, so that the session can be resumed.
func (k *connection) end(why error) {
	k.once.Do(func() {
		k.cause = why
		close(k.done)
		_ = k.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(resumable, ""), time.Now().Add(time.Second)) // politeness
		_ = k.conn.Close()                                                                                                        // it has ended
	})
}

// ended judges why the connection ended, and what that means for the session.
func (k *connection) ended() error {
	if !k.since.IsZero() && time.Since(k.since) >= k.pulse.settled {
		k.link.lost = 0
	}
	lose := func() {
		k.link = session{lost: k.link.lost + 1, loaded: true}
	}
	var closed *websocket.CloseError
	switch {
	case errors.Is(k.cause, errInvalid):
		lose()
	case errors.Is(k.cause, errReconnect) && k.since.IsZero():
		return fmt.Errorf("before there was a session: %s", k.cause) // not at once, or it would go on for ever
	case errors.As(k.cause, &closed):
		switch reason := hopeless[closed.Code]; {
		case reason != "":
			return fmt.Errorf("%w: %s (%d)", channels.ErrFatal, reason, closed.Code)
		case closed.Code == 4007 || closed.Code == 4009: // an invalid sequence, a session that timed out
			lose()
			return errInvalid
		}
		return fmt.Errorf("the gateway closed the connection: %d", closed.Code) // its text may be anything
	case k.link.ID == "": // an identify that led to nothing
		lose()
	}
	return k.cause
}

// read hands frames on until the connection fails.
func (k *connection) read(was session, beside *sync.WaitGroup) error {
	// A session must come soon; from then on the heartbeats watch.
	_ = k.conn.SetReadDeadline(time.Now().Add(k.pulse.open))
	greeted := false
	for {
		var f frame
		if err := k.conn.ReadJSON(&f); err != nil {
			return err
		}
		switch f.Op {
		case opHello:
			if greeted {
				continue
			}
			greeted = true
			if err := k.greet(f, was, beside); err != nil {
				return err
			}
		case opHeartbeat:
			if err := k.heartbeat(); err != nil {
				return err
			}
		case opAck:
			k.acked.Store(true)
		case opReconnect:
			return errReconnect
		case opInvalid:
			if string(f.Data) == "true" {
				return errReconnect
			}
			return errInvalid
		case opDispatch:
			if !greeted {
				continue
			}
			if f.Type == "READY" || f.Type == "RESUMED" {
				_ = k.conn.SetReadDeadline(time.Time{})
			}
			select {
			case k.waiting <- f:
			case <-k.done:
				return nil
			}
		}
	}
}

// greet answers Hello: heartbeats begin, and the session is resumed, or one asked for.
func (k *connection) greet(f frame, was session, beside *sync.WaitGroup) error {
	var hello struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if err := json.Unmarshal(f.Data, &hello); err != nil || hello.Interval <= 0 || hello.Interval > 1e7 {
		return errors.New("hello without an interval")
	}
	every := time.Duration(hello.Interval) * time.Millisecond
	k.acked.Store(true)
	beside.Go(func() { k.beat(every) })
	token := strings.TrimPrefix(k.rest.Token, "Bot ")
	if was.ID != "" {
		return k.send(opResume, map[string]any{"token": token, "session_id": was.ID, "seq": was.Seq})
	}
	// discordgo's own type for this still has the names of old versions.
	return k.send(opIdentify, map[string]any{
		"token": token, "intents": k.intents(), "large_threshold": 50, "shard": [2]int{0, 1},
		"properties": map[string]string{"os": runtime.GOOS, "browser": "heddle", "device": "heddle"},
	})
}

// beat sends heartbeats. One that is not acknowledged before the next is due ends
// the connection, unless the acknowledgement may be among what waits to be read.
func (k *connection) beat(every time.Duration) {
	t := time.NewTimer(rand.N(every))
	defer t.Stop()
	for {
		select {
		case <-k.done:
			return
		case <-t.C:
		}
		if !k.acked.Swap(false) && len(k.waiting) < cap(k.waiting) {
			k.end(errDead)
			return
		}
		if err := k.heartbeat(); err != nil {
			k.end(err)
			return
		}
		t.Reset(every)
	}
}

func (k *connection) heartbeat() error {
	if n := k.seq.Load(); n > 0 {
		return k.send(opHeartbeat, n)
	}
	return k.send(opHeartbeat, nil)
}

func (k *connection) send(op int, data any) error {
	k.write.Lock()
	defer k.write.Unlock()
	_ = k.conn.SetWriteDeadline(time.Now().Add(writeTime))
	return k.conn.WriteJSON(map[string]any{"op": op, "d": data})
}

// admit takes frames in order until no more come; those that wait are taken
// together.
func (k *connection) admit(ctx context.Context, take channels.Take) error {
	for f := range k.waiting {
		batch := []frame{f}
		for more := true; more && len(batch) < mostAtOnce; {
			select {
			case f, ok := <-k.waiting:
				if more = ok; ok {
					batch = append(batch, f)
				}
			default:
				more = false
			}
		}
		if err := k.admitAll(ctx, take, batch); err != nil {
			return err
		}
	}
	return nil
}

// admitAll admits a batch up to the first frame that cannot be read now: it and
// what follows comes again.
func (k *connection) admitAll(ctx context.Context, take channels.Take, batch []frame) error {
	var all channels.Inbound
	var replies []func()
	var failed error
	seq := k.link.Seq
	for _, f := range batch {
		in, reply, err := k.inbound(ctx, f)
		if err != nil {
			failed = err
			break
		}
		all.Events = append(all.Events, in.Events...)
		all.Ignored = append(all.Ignored, in.Ignored...)
		if reply != nil {
			replies = append(replies, reply)
		}
		if f.Seq > 0 {
			seq = f.Seq
		}
	}
	if err := take(ctx, all); err != nil {
		return err
	}
	k.link.Seq = seq
	k.seq.Store(seq)
	for _, r := range replies {
		k.replies.Go(r)
	}
	if time.Since(k.saved) >= saveEvery {
		k.saved = time.Now()
		k.save(ctx)
	}
	return failed
}

// inbound reads one frame. The reply is made once it is admitted.
func (k *connection) inbound(ctx context.Context, f frame) (in channels.Inbound, reply func(), err error) {
	switch f.Type {
	case "READY":
		var ready struct {
			ID  string `json:"session_id"`
			URL string `json:"resume_gateway_url"`
		}
		if err := json.Unmarshal(f.Data, &ready); err != nil || ready.ID == "" {
			return in, nil, errors.New("ready without a session")
		}
		k.link.ID, k.link.URL, k.link.Intents = ready.ID, ready.URL, k.intents()
		k.since, k.saved = time.Now(), time.Time{}
		k.live()
		return in, nil, nil
	case "RESUMED":
		k.since = time.Now()
		k.live()
		return in, nil, nil
	case "INTERACTION_CREATE":
		i, err := readInteraction(f.Data)
		if err == nil {
			in, err = i.inbound(k.identity(), time.Time{})
		}
		if err != nil {
			return ignored("", "malformed"), nil, nil // again it would be the same
		}
		return in, func() { k.reply(ctx, i, in.Reply) }, nil
	}
	in, err = k.event(ctx, f.Type, f.Data)
	return in, nil, err
}

// reply answers an interaction. Discord takes one answer only and shows the
// person if none came, so what fails is left at that.
func (k *connection) reply(ctx context.Context, i *interaction, answer []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-ctx.Done():
		return
	}
	_ = k.request(ctx, http.MethodPost, "/interactions/"+url.PathEscape(i.ID)+"/"+url.PathEscape(i.Token)+"/callback", "application/json", answer, nil)
}
