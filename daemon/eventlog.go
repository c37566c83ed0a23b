package daemon

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/api"
)

// Bounds of the log when the options do not say.
const (
	defaultLogBytes    = 16 << 20
	defaultOutputBytes = 2 << 20
	// entryCost is what an event costs beside its text.
	entryCost = 160
)

// Log is the stream of events: a ring bounded by bytes. Output of commands is
// bounded per session on top, so that one noisy command cannot push the events
// of all others out.
//
// # Order
//
// Events are numbered in the order in which Publish is called, from 2, without
// holes; 1 stands for the beginning, so that a gap can come before the first. A subscriber gets, of the events that its filter lets through, each
// once, in the order of their numbers; where the ring no longer holds one, it
// gets a gap that covers it, in the place where it would have come. Events of
// one command come in the order started, output and denied, exited, closed;
// a turn's end comes after the ends of the commands that it ended and after the
// cleaning of its scratch; a session's closed event is its last.
//
// Any number of goroutines may use a Log at once.
type Log struct {
	epoch    string
	maxBytes int
	maxOut   int // output bytes per session

	mu      sync.Mutex
	entries []logEntry // consecutive numbers; entries[0].seq = next - len
	next    int64
	bytes   int
	output  map[string]*outputShare // by session, while it has output in the ring
	changed chan struct{}           // closed and replaced at each event
	// followers are the numbers up to which each subscriber has been served.
	followers map[*follower]int64
}

// follower is one running Follow.
type follower struct{ _ byte }

// logEntry is one event. note is nil once its text was given up.
type logEntry struct {
	seq     int64
	kind    string
	session string
	note    *api.Notification
	size    int
}

// outputShare is what a session's output holds of the ring.
type outputShare struct {
	bytes int
	seqs  []int64 // of output events whose text is held, oldest first
}

// NewLog makes an empty log with a fresh epoch. Zero sizes mean the defaults:
// 16 MiB in all, 2 MiB of output for each session.
func NewLog(maxBytes, maxOutput int) *Log {
	if maxBytes <= 0 {
		maxBytes = defaultLogBytes
	}
	if maxOutput <= 0 {
		maxOutput = defaultOutputBytes
	}
	return &Log{epoch: rand.Text(), maxBytes: maxBytes, maxOut: maxOutput, next: 2,
		output: map[string]*outputShare{}, changed: make(chan struct{}), followers: map[*follower]int64{}}
}

// Epoch names this life of the daemon.
func (l *Log) Epoch() string { return l.epoch }

// Place is the place of the newest event.
func (l *Log) Place() api.Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return api.Place{Epoch: l.epoch, Seq: l.next - 1}
}

// Bytes is what the ring holds now.
func (l *Log) Bytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Publish numbers an event and keeps it. It never waits for a subscriber.
func (l *Log) Publish(e api.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Epoch, e.Seq, e.Time = l.epoch, l.next, time.Now()
	note, err := api.EncodeEvent(e)
	if err != nil {
		return // an event that cannot be encoded has no number
	}
	l.next++
	ent := logEntry{seq: e.Seq, kind: e.Type, session: e.SessionID, note: note, size: note.Size() + entryCost}
	l.entries = append(l.entries, ent)
	l.bytes += ent.size
	if e.Type == api.EventProcessOutput.Name {
		l.shareOutput(ent)
	}
	for l.bytes > l.maxBytes && len(l.entries) > 1 {
		l.dropOldest()
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// shareOutput gives up the oldest output of a session that has more than its
// share. Called with mu held.
func (l *Log) shareOutput(ent logEntry) {
	s := l.output[ent.session]
	if s == nil {
		s = &outputShare{}
		l.output[ent.session] = s
	}
	s.bytes += ent.size
	s.seqs = append(s.seqs, ent.seq)
	for s.bytes > l.maxOut && len(s.seqs) > 1 {
		old := &l.entries[s.seqs[0]-l.entries[0].seq]
		s.bytes -= old.size
		s.seqs = s.seqs[1:]
		l.bytes -= old.size - entryCost
		old.note, old.size = nil, entryCost
	}
}

// dropOldest forgets the first entry. Called with mu held.
func (l *Log) dropOldest() {
	old := l.entries[0]
	l.entries[0] = logEntry{}
	l.entries = l.entries[1:]
	l.bytes -= old.size
	if s := l.output[old.session]; s != nil && old.note != nil && len(s.seqs) > 0 && s.seqs[0] == old.seq {
		s.bytes -= old.size
		s.seqs = s.seqs[1:]
		if len(s.seqs) == 0 {
			delete(l.output, old.session)
		}
	}
}

// Filter says which events a subscriber wants. The zero Filter wants all.
type Filter struct {
	Session string
	Types   []string
}

func (f Filter) wants(e *logEntry) bool {
	return (f.Session == "" || f.Session == e.session) && (len(f.Types) == 0 || slices.Contains(f.Types, e.kind))
}

// Sink takes the notifications of one subscriber in order and waits while it
// has no room.
type Sink interface {
	NotifyWait(ctx context.Context, n *api.Notification) error
}

// Follow sends the events after a place to a sink until the context ends or
// the sink fails. After another epoch, or after a number that this epoch has
// not reached, everything that is held is sent behind a gap.
func (l *Log) Follow(ctx context.Context, after api.Place, f Filter, to Sink) error {
	me := &follower{}
	defer l.unfollow(me)
	cursor := after.Seq
	if after.Epoch != l.epoch || cursor > l.Place().Seq {
		if err := l.sendGap(ctx, to, 1, l.firstHeld()-1, api.GapEpoch, f); err != nil {
			return err
		}
		cursor = l.firstHeld() - 1
	}
	for {
		batch, gap, changed := l.take(me, cursor, f)
		if gap != nil {
			if err := l.sendGap(ctx, to, gap.From, gap.To, gap.Reason, f); err != nil {
				return err
			}
			cursor = gap.To
			continue
		}
		for _, e := range batch {
			if e.note != nil {
				if err := to.NotifyWait(ctx, e.note); err != nil {
					return err
				}
			}
			cursor = e.seq
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// batchSize is how many events are taken at once: a subscriber that stalls
// keeps so many texts alive.
const batchSize = 64

// take returns the next events that the filter lets through, at most batchSize,
// or a gap when the next one is no longer held. The last element of the batch
// may be a place holder without a text that only moves the cursor.
func (l *Log) take(me *follower, cursor int64, f Filter) (batch []logEntry, gap *api.GapData, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers[me] = cursor
	first := l.next - int64(len(l.entries))
	if cursor+1 < first {
		return nil, &api.GapData{From: cursor + 1, To: first - 1, Reason: api.GapEvicted}, nil
	}
	for i := cursor + 1 - first; i < int64(len(l.entries)); i++ {
		e := &l.entries[i]
		if !f.wants(e) {
			continue
		}
		if e.note == nil {
			if len(batch) > 0 {
				return batch, nil, nil
			}
			g := &api.GapData{From: e.seq, To: e.seq, Reason: api.GapEvicted}
			for j := i + 1; j < int64(len(l.entries)); j++ {
				n := &l.entries[j]
				if f.wants(n) {
					if n.note != nil {
						break
					}
					g.To = n.seq
				}
			}
			return nil, g, nil
		}
		batch = append(batch, *e)
		if len(batch) == batchSize {
			return batch, nil, nil
		}
	}
	if n := l.next - 1; n > cursor && (len(batch) == 0 || batch[len(batch)-1].seq < n) {
		batch = append(batch, logEntry{seq: n}) // nothing wanted up to here
	}
	return batch, nil, l.changed
}

func (l *Log) unfollow(me *follower) {
	l.mu.Lock()
	delete(l.followers, me)
	l.mu.Unlock()
}

// followed tells whether every subscriber has been handed all there is.
func (l *Log) followed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cursor := range l.followers {
		if cursor < l.next-1 {
			return false
		}
	}
	return true
}

func (l *Log) firstHeld() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - int64(len(l.entries))
}

// sendGap sends a gap. It stands at the number of the last event that is
// missing, so that a client that resumes after it goes on behind the gap.
func (l *Log) sendGap(ctx context.Context, to Sink, from, upTo int64, why api.GapReason, f Filter) error {
	e, err := api.EventGap.New(f.Session, "", api.GapData{From: from, To: upTo, Reason: why})
	if err != nil {
		return err
	}
	e.Epoch, e.Seq, e.Time = l.epoch, upTo, time.Now()
	note, err := api.EncodeEvent(e)
	if err != nil {
		return err
	}
	return to.NotifyWait(ctx, note)
}
