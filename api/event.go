package api

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EventMethod is the notification that carries one event.
const EventMethod = "event"

// Event is something that happened (facts/conventions section 10).
//
// Epoch is one life of the daemon; Seq grows strictly within it, from 1. A
// subscriber sees numbers grow; numbers that it does not see belong to events
// it did not ask for, or to a gap that it is told of.
//
// The events of one call (fs.chunk, fs.streamEnd) have the number 0: they have
// no place in the stream. They go to the connection that made the call, come in
// the order of their own `seq`, are neither kept nor replayed, and no gap
// stands for them.
type Event struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
	// Time is in UTC, RFC 3339 with nanoseconds.
	Time      time.Time `json:"time"`
	Type      string    `json:"type"`
	SessionID string    `json:"sessionId,omitzero"`
	TurnID    string    `json:"turnId,omitzero"`
	// Data is an object; its type goes with Type, see [EventTypes].
	Data jsontext.Value `json:"data"`
}

// EventSpec describes one type of event.
type EventSpec struct {
	Name    string
	Summary string
	Data    reflect.Type
}

// EventType is an [EventSpec] with its type known to the compiler.
type EventType[D any] struct{ *EventSpec }

func newEvent[D any](name, summary string) EventType[D] {
	return EventType[D]{&EventSpec{Name: name, Summary: summary, Data: reflect.TypeFor[D]()}}
}

// New makes an event of this type without epoch, number and time: whoever
// keeps the log sets those. sessionID and turnID may be empty.
func (t EventType[D]) New(sessionID, turnID string, data D) (Event, error) {
	raw, err := json.Marshal(data, outgoing)
	if err != nil {
		return Event{}, fmt.Errorf("encode event %s: %w", t.Name, err)
	}
	return Event{Type: t.Name, SessionID: sessionID, TurnID: turnID, Data: raw}, nil
}

// Decode gives the data of an event of this type. Members that this version
// does not know are ignored.
func (t EventType[D]) Decode(e Event) (D, error) {
	var d D
	if e.Type != t.Name {
		return d, fmt.Errorf("decode event: it is a %s, not a %s", e.Type, t.Name)
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return d, fmt.Errorf("decode event %s: %w", e.Type, err)
	}
	return d, nil
}

// Notification is an event encoded once for any number of connections. It is
// immutable.
type Notification struct {
	epoch string
	// from is seq, or the first number of the gap that this event tells of: if
	// it is dropped itself, the gap that stands for it covers those too.
	from, seq int64
	text      []byte
}

// EncodeEvent makes the notification of an event whose epoch, number and time
// are set.
func EncodeEvent(e Event) (*Notification, error) {
	if e.Epoch == "" || e.Seq < 1 {
		return nil, fmt.Errorf("encode event %s: no place in the stream", e.Type)
	}
	return encodeEvent(e)
}

// EncodeUnnumbered makes the notification of an event that has no place in the
// stream: its epoch and time are set, its number is 0. It can be sent with
// [Conn.NotifyWait] only.
func EncodeUnnumbered(e Event) (*Notification, error) {
	if e.Epoch == "" || e.Seq != 0 {
		return nil, fmt.Errorf("encode event %s: it has a place in the stream, or no epoch", e.Type)
	}
	return encodeEvent(e)
}

func encodeEvent(e Event) (*Notification, error) {
	from, err := firstNumber(e)
	if err != nil {
		return nil, err
	}
	e.Time = e.Time.UTC()
	text, err := json.Marshal(notification{Version: "2.0", Method: EventMethod, Params: e}, outgoing)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	return &Notification{epoch: e.Epoch, from: from, seq: e.Seq, text: text}, nil
}

// Size is the number of bytes on the wire, for a log that is bounded by bytes.
func (n *Notification) Size() int { return len(n.text) }

// Text is the message as it goes over the wire. It must not be changed.
func (n *Notification) Text() []byte { return n.text }

// Seq is the event's number.
func (n *Notification) Seq() int64 { return n.seq }

// FirstNumber is the first number that an event speaks for: its own, or the
// first that is missing when it tells of a gap.
func (e Event) FirstNumber() int64 {
	n, err := firstNumber(e)
	if err != nil {
		return e.Seq
	}
	return n
}

func firstNumber(e Event) (int64, error) {
	if e.Type != EventGap.Name {
		return e.Seq, nil
	}
	g, err := EventGap.Decode(e)
	if err != nil {
		return 0, err
	}
	return min(g.From, e.Seq), nil
}
