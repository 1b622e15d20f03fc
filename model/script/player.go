package script

import (
	"context"
	"sync"
)

// A Player plays a script to many conversations at once. The only thing it
// remembers is which faults and waits were played: each comes once.
type Player struct {
	script  *Script
	arrived chan struct{}
	release chan struct{}

	mu     sync.Mutex
	played map[string]int // by place in the script
}

// NewPlayer returns a player.
func NewPlayer(s *Script) *Player {
	return &Player{script: s, arrived: make(chan struct{}, 1024), release: make(chan struct{}), played: map[string]int{}}
}

// Next is what a model says to this conversation. It blocks at a wait until it
// is released or ctx ends. It is not ok when the script has no line left.
func (p *Player) Next(ctx context.Context, talk []Message) (l Line, ok bool, err error) {
	for {
		l, ok = p.next(talk)
		if !ok || !l.Wait {
			return l.filled(talk), ok, nil
		}
		p.arrived <- struct{}{}
		select {
		case <-p.release:
		case <-ctx.Done():
			return Line{}, true, context.Cause(ctx)
		}
		if !l.silent() {
			return l.filled(talk), true, nil
		}
	}
}

func (p *Player) next(talk []Message) (Line, bool) {
	lines, at, ok := p.script.find(talk)
	if !ok {
		return Line{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.played[at]
	if n >= len(lines) {
		return Line{}, false
	}
	if lines[n].once() {
		p.played[at]++
	}
	return lines[n], true
}

// Await returns when a conversation is at a wait that no earlier Await saw.
func (p *Player) Await(ctx context.Context) error {
	select {
	case <-p.arrived:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release lets one conversation go on that is at a wait.
func (p *Player) Release(ctx context.Context) error {
	select {
	case p.release <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
