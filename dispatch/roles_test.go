package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// A roster is a channel that only knows people.
type roster struct {
	role func(ctx context.Context, account string, a chat.Author) (chat.Role, error)
	n    atomic.Int32
}

func (*roster) Name() string { return "fake" }

func (r *roster) Role(ctx context.Context, account string, a chat.Author) (chat.Role, error) {
	r.n.Add(1)
	return r.role(ctx, account, a)
}

func withRoles(t *testing.T, role func(context.Context, string, chat.Author) (chat.Role, error), test func(*testing.T, *roster, *Roles)) {
	synctest.Test(t, func(t *testing.T) {
		ro := &roster{role: role}
		test(t, ro, NewRoles([]channels.Channel{&fake{}, ro}, map[Bot]bool{{"fake", "B1"}: true}, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil))))
	})
}

func slowMember(ctx context.Context, _ string, _ chat.Author) (chat.Role, error) {
	if !sleep(ctx, time.Second) {
		return chat.Outsider, ctx.Err()
	}
	return chat.Member, nil
}

// Bots are outsiders, but those that are named are members, where they are named.
func TestRoleOfBots(t *testing.T) {
	t.Parallel()
	withRoles(t, slowMember, func(t *testing.T, ro *roster, r *Roles) {
		for author, want := range map[chat.Author]chat.Role{{ID: "B1", Bot: true}: chat.Member, {ID: "B2", Bot: true}: chat.Outsider, {ID: "B2", Name: "B1", Bot: true}: chat.Outsider} {
			if got, err := r.Role(t.Context(), thread("r", "1"), author); got != want || err != nil {
				t.Errorf("%+v: role %v, %v; want %v", author, got, err, want)
			}
		}
		if got, _ := r.Role(t.Context(), chat.Thread{Channel: "other", Account: "A"}, chat.Author{ID: "B1", Bot: true}); got != chat.Outsider {
			t.Errorf("a bot of another channel has the role %v", got)
		}
		if n := ro.n.Load(); n != 0 {
			t.Errorf("the channel was asked %d times", n)
		}
	})
}

// Who comes through the API is an admin in every thread, also in those of
// channels that know nobody.
func TestRoleOfTheAPI(t *testing.T) {
	t.Parallel()
	withRoles(t, slowMember, func(t *testing.T, ro *roster, r *Roles) {
		for _, th := range []chat.Thread{thread("r", "1"), {Channel: "api", Account: "assistant", Room: "1"}} {
			if got, err := r.Role(t.Context(), th, chat.Author{ID: "api", Account: chat.APIAccount}); got != chat.Admin || err != nil {
				t.Errorf("%s: role %v, %v", th, got, err)
			}
		}
		if n := ro.n.Load(); n != 0 {
			t.Errorf("the channel was asked %d times", n)
		}
	})
}

func TestRoleIsLookedUpOnceAMinute(t *testing.T) {
	t.Parallel()
	withRoles(t, slowMember, func(t *testing.T, ro *roster, r *Roles) {
		a := chat.Author{ID: "U1", Account: "A"}
		ask := func() {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if got, err := r.Role(t.Context(), thread("r", "1"), a); got != chat.Member || err != nil {
						t.Errorf("role %v, %v", got, err)
					}
				})
			}
			wg.Wait()
		}
		ask()
		ask()
		time.Sleep(roleFor - time.Nanosecond)
		ask()
		if ro.n.Load() != 1 {
			t.Errorf("%d look-ups, want 1", ro.n.Load())
		}
		time.Sleep(time.Nanosecond)
		ask()
		if ro.n.Load() != 2 {
			t.Errorf("%d look-ups after a minute, want 2", ro.n.Load())
		}
	})
}

func TestWhoIsAskedFor(t *testing.T) {
	t.Parallel()
	role := func(_ context.Context, account string, a chat.Author) (chat.Role, error) {
		return map[string]chat.Role{"A/A/U1": chat.Admin, "A/B/U1": chat.Member, "B/A/U1": chat.Maintainer}[account+"/"+a.Account+"/"+a.ID], nil
	}
	withRoles(t, role, func(t *testing.T, ro *roster, r *Roles) {
		for range 2 { // from the roster, then from memory
			for _, tc := range []struct {
				channel, account string
				author           chat.Author
				want             chat.Role
			}{
				{"fake", "A", chat.Author{ID: "U1", Account: "A"}, chat.Admin},
				{"fake", "A", chat.Author{ID: "U1", Account: "A", Name: "another name"}, chat.Admin},
				{"fake", "A", chat.Author{ID: "U1", Account: "B"}, chat.Member},
				{"fake", "B", chat.Author{ID: "U1", Account: "A"}, chat.Maintainer},
				{"fake", "A", chat.Author{ID: "U2", Account: "A"}, chat.Outsider},
				{"fake", "A", chat.Author{ID: "U1", Account: "A", Bot: true}, chat.Outsider},
				{"fake", "A", chat.Author{Account: "A", Name: "U1"}, chat.Outsider},
				{"other", "A", chat.Author{ID: "U1", Account: "A"}, chat.Outsider},
			} {
				if got, err := r.Role(t.Context(), chat.Thread{Channel: tc.channel, Account: tc.account}, tc.author); got != tc.want || err != nil {
					t.Errorf("%s %s %+v: %v, %v; want %v", tc.channel, tc.account, tc.author, got, err, tc.want)
				}
			}
		}
		if ro.n.Load() != 4 {
			t.Errorf("%d look-ups, want 4: machines and nobody are not looked up", ro.n.Load())
		}
	})
}

func TestFailedLookUp(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	role := func(context.Context, string, chat.Author) (chat.Role, error) {
		if broken.Load() {
			return chat.Admin, errors.New("not reached")
		}
		return chat.Admin, nil
	}
	withRoles(t, role, func(t *testing.T, ro *roster, r *Roles) {
		expect := func(want chat.Role, lookups int32) {
			t.Helper()
			if got, err := r.Role(t.Context(), thread("r", "1"), chat.Author{ID: "U1", Account: "A"}); got != want || ro.n.Load() != lookups || (err == nil) != (want == chat.Admin) {
				t.Errorf("%v after %d look-ups, want %v after %d", got, ro.n.Load(), want, lookups)
			}
		}
		expect(chat.Outsider, 1)
		broken.Store(false)
		time.Sleep(roleFailFor - time.Nanosecond)
		expect(chat.Outsider, 1)
		time.Sleep(time.Nanosecond)
		expect(chat.Admin, 2)
	})
}

func TestLookUpsEnd(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ string, _ chat.Author) (chat.Role, error) {
		<-ctx.Done()
		return chat.Admin, ctx.Err()
	}
	a := chat.Author{ID: "U1", Account: "A"}
	t.Run("by themselves", func(t *testing.T) {
		t.Parallel()
		withRoles(t, hangs, func(t *testing.T, _ *roster, r *Roles) {
			began := time.Now()
			if got, err := r.Role(t.Context(), thread("r", "1"), a); got != chat.Outsider || !errors.Is(err, ErrRole) || time.Since(began) != roleTime {
				t.Errorf("%v, %v after %v", got, err, time.Since(began))
			}
		})
	})
	t.Run("for one who does not wait", func(t *testing.T) {
		t.Parallel()
		withRoles(t, slowMember, func(t *testing.T, ro *roster, r *Roles) {
			first, leave := context.WithCancel(t.Context())
			got := make(chan chat.Role, 3)
			ask := func(ctx context.Context) { role, _ := r.Role(ctx, thread("r", "1"), a); got <- role }
			go ask(first)
			synctest.Wait()
			second, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if role, err := r.Role(second, thread("r", "1"), a); role != chat.Outsider || !errors.Is(err, ErrRole) {
				t.Errorf("%v, %v for one who did not wait", role, err)
			}
			go ask(t.Context())
			synctest.Wait()
			leave() // the one who asks; the other still gets the answer
			if diff := cmp.Diff([]chat.Role{chat.Member, chat.Member}, []chat.Role{<-got, <-got}); diff != "" || ro.n.Load() != 1 {
				t.Errorf("%d look-ups: %s", ro.n.Load(), diff)
			}
		})
	})
}

func TestRolesAreBounded(t *testing.T) {
	t.Parallel()
	member := func(context.Context, string, chat.Author) (chat.Role, error) { return chat.Member, nil }
	withRoles(t, member, func(t *testing.T, _ *roster, r *Roles) {
		for i := range 2*rolesMost + 1 {
			if _, err := r.Role(t.Context(), thread("r", "1"), chat.Author{ID: fmt.Sprint(i), Account: "A"}); err != nil {
				t.Fatal(err)
			}
			if len(r.known) > rolesMost {
				t.Fatalf("%d people are remembered", len(r.known))
			}
		}
	})
}

func TestCompose(t *testing.T) {
	t.Parallel()
	compose := Compose([]channels.Channel{&roster{}, &fake{limits: channels.Limits{Files: true}}})
	got, files := compose(thread("r", "1"), "x", chat.Member)
	if diff := cmp.Diff([]string{"composed x"}, got); diff != "" || !files {
		t.Errorf("files %t: %s", files, diff)
	}
	if got, files := compose(chat.Thread{Channel: "gone"}, "x", chat.Member); got != nil || files {
		t.Errorf("%q for a channel that is not there", got)
	}
}

// Who waits for a look-up that panics is not taken for a stranger.
func TestRoleOfAPanic(t *testing.T) {
	t.Parallel()
	withRoles(t, func(context.Context, string, chat.Author) (chat.Role, error) {
		time.Sleep(time.Second)
		panic("a fault")
	}, func(t *testing.T, _ *roster, r *Roles) {
		ask := func() error {
			_, err := r.Role(t.Context(), thread("r", "1"), chat.Author{ID: "U1", Account: "A"})
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			_ = ask()
		})
		synctest.Wait()
		if err := ask(); !errors.Is(err, ErrRole) {
			t.Errorf("%v", err)
		}
		wg.Wait()
	})
}
