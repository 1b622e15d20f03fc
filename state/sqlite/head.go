package sqlite

import (
	"fmt"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A head is a row of conversations.
type head struct {
	n                         int64
	id                        state.ID
	thread                    chat.Thread
	agent                     string
	createdAt, updatedAt      time.Time
	seq, arrived, loud, taken int64
	owner                     any // nil without a lease
	epoch, attempt            int64
	readyAt, pauseAt          time.Time
	left                      bool // its threads are not followed
	heldBy                    any  // the author that readyAt waits for, nil for none
	heldAt                    time.Time
}

const headColumns = `n, id, thread, agent, created_at, updated_at, seq, arrived, loud, taken, owner, epoch, attempt, ready_at, pause_at, left, held_by, held_at`

func (h *head) scan(r row) (err error) {
	*h = head{
		n: r.int(0), id: state.ID(r.text(1)), agent: r.text(3), createdAt: r.time(4), updatedAt: r.time(5),
		seq: r.int(6), arrived: r.int(7), loud: r.int(8), taken: r.int(9),
		owner: r[10], epoch: r.int(11), attempt: r.int(12), readyAt: r.time(13), pauseAt: r.time(14),
		left: r.int(15) != 0, heldBy: r[16], heldAt: r.time(17),
	}
	if h.thread, err = chat.ParseThread(r.text(2)); err != nil {
		return fmt.Errorf("%w: conversation %s: %w", state.ErrDamaged, h.id, err)
	}
	return nil
}

const (
	headByN      = `SELECT ` + headColumns + ` FROM conversations WHERE n = ?`
	headByID     = `SELECT ` + headColumns + ` FROM conversations WHERE id = ?`
	headByThread = `SELECT ` + headColumns + ` FROM conversations WHERE thread = ?`
	headByOpened = `SELECT ` + headColumns + ` FROM conversations WHERE n = (SELECT conversation FROM threads WHERE thread = ?)`
)

// head reads the conversation that a query finds, nil if there is none.
func (c *conn) head(query string, arg any) (*head, error) {
	var h head
	if err := c.query(query, h.scan, arg); err != nil || h.n == 0 {
		return nil, err
	}
	return &h, nil
}

// heads are what the writer knows of the conversations last used. It is the
// only one that changes them, and forgets all of them after a rollback.
type heads struct {
	byN      map[int64]*head
	byID     map[state.ID]*head
	byThread map[string]*head
}

// maxHeads bounds heads; one takes about half a kilobyte.
const maxHeads = 4096

func (hs *heads) add(h *head) {
	if len(hs.byN) == 0 || len(hs.byN) >= maxHeads {
		*hs = heads{map[int64]*head{}, map[state.ID]*head{}, map[string]*head{}}
	}
	hs.byN[h.n], hs.byID[h.id], hs.byThread[h.thread.Key()] = h, h, h
}

func (t *tx) byN(n int64) (*head, error) { return t.known(t.w.heads.byN[n], headByN, n) }

func (t *tx) byID(id state.ID) (*head, error) {
	return t.known(t.w.heads.byID[id], headByID, string(id))
}

// byThread finds the conversation that owns a thread.
func (t *tx) byThread(key string) (*head, error) {
	h, err := t.known(t.w.heads.byThread[key], headByThread, key)
	if h != nil || err != nil {
		return h, err
	}
	n := int64(0)
	if err := t.query(`SELECT conversation FROM threads WHERE thread = ?`, func(r row) error { n = r.int(0); return nil }, key); err != nil || n == 0 {
		return nil, err
	}
	return t.byN(n)
}

// known returns h, or the one that a query finds, nil if there is none.
func (t *tx) known(h *head, query string, arg any) (*head, error) {
	if h != nil {
		return h, nil
	}
	h, err := t.head(query, arg)
	if h != nil {
		t.w.heads.add(h)
	}
	return h, err
}

// create adds a new conversation and gives it its number.
func (t *tx) create(h *head) error {
	_, err := t.exec(`INSERT INTO conversations (id, thread, agent, created_at, updated_at, seq, arrived, loud, taken, epoch, attempt, ready_at, left)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?)`,
		string(h.id), h.thread.Key(), h.agent, h.createdAt, h.updatedAt, h.seq, h.arrived, h.loud, h.taken, h.readyAt, h.left)
	if err != nil {
		return err
	}
	h.n = t.last
	t.w.heads.add(h)
	t.ready.add(h.readyAt)
	return nil
}

// save writes what changes of a conversation.
func (t *tx) save(h *head) error {
	_, err := t.exec(`UPDATE conversations SET updated_at = ?, seq = ?, arrived = ?, loud = ?, taken = ?,
		owner = ?, epoch = ?, attempt = ?, ready_at = ?, pause_at = ?, left = ?, held_by = ?, held_at = ? WHERE n = ?`,
		h.updatedAt, h.seq, h.arrived, h.loud, h.taken, h.owner, h.epoch, h.attempt, h.readyAt, h.pauseAt, h.left, h.heldBy, h.heldAt, h.n)
	t.ready.add(h.readyAt)
	return err
}

func (h *head) leased() bool { return h.owner != nil }

func (h *head) conversation() state.Conversation {
	return state.Conversation{
		ID: h.id, Agent: h.agent, Thread: h.thread, Seq: h.seq, Inbox: int(h.arrived - h.taken),
		CreatedAt: h.createdAt, UpdatedAt: h.updatedAt,
	}
}

func (h *head) lease() state.Lease {
	owner, _ := h.owner.(string)
	return state.Lease{Conversation: h.conversation(), Owner: owner, Epoch: h.epoch, Attempt: int(h.attempt), Until: h.readyAt}
}

// key is where a conversation's seq-th record or inbox entry stands.
func key(n, seq int64) int64 { return n<<32 | seq }

// lastKey is the greatest key of a conversation.
func lastKey(n int64) int64 { return key(n, 1<<32-1) }

// seqOf is the seq in a key.
func seqOf(key int64) int64 { return key & (1<<32 - 1) }
