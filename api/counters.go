package api

import "sync/atomic"

// Counters count what connections do, for server/status. One may be shared by
// all connections of a daemon; every field may be read at any time.
type Counters struct {
	Connections      atomic.Int64 // open now
	Frames           atomic.Int64 // text messages read
	BytesIn          atomic.Int64
	BytesOut         atomic.Int64
	Calls            atomic.Int64 // carried out, notifications included
	InFlight         atomic.Int64 // now
	Malformed        atomic.Int64 // answered with a code of JSON-RPC for malformed traffic
	Busy             atomic.Int64
	Cancelled        atomic.Int64
	Panics           atomic.Int64
	IgnoredResponses atomic.Int64 // response frames for requests that were never made
	Events           atomic.Int64 // written
	EventsDropped    atomic.Int64 // behind a gap
	Gaps             atomic.Int64 // written
	SlowClosed       atomic.Int64 // connections closed with 1013
}

// Snapshot names the values as server/status does.
func (c *Counters) Snapshot() map[string]int64 {
	return map[string]int64{
		"connections":      c.Connections.Load(),
		"frames":           c.Frames.Load(),
		"bytesIn":          c.BytesIn.Load(),
		"bytesOut":         c.BytesOut.Load(),
		"calls":            c.Calls.Load(),
		"inFlight":         c.InFlight.Load(),
		"malformed":        c.Malformed.Load(),
		"busy":             c.Busy.Load(),
		"cancelled":        c.Cancelled.Load(),
		"panics":           c.Panics.Load(),
		"ignoredResponses": c.IgnoredResponses.Load(),
		"events":           c.Events.Load(),
		"eventsDropped":    c.EventsDropped.Load(),
		"gaps":             c.Gaps.Load(),
		"slowClosed":       c.SlowClosed.Load(),
	}
}
