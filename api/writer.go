package api

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/api/internal/queue"
)

// write is the writer: the only goroutine that writes to the socket. Every
// write has a deadline; after one that failed the socket is closed, since what
// the peer has seen is then unknown.
//
// It waits for one thing, the wake channel: pings and the end of an orderly
// end come through the state like everything else.
func (c *Conn) write() {
	defer c.update(func(s *state) { s.gone = true })
	ping := time.AfterFunc(c.opt.PingInterval, func() { c.update(func(s *state) { s.pingDue = true }) })
	defer ping.Stop()
	for {
		var w work
		c.update(func(s *state) { w = s.take() })
		var err error
		switch {
		case w.over:
			c.sayClose(w.by)
			return
		case w.pongDue:
			err = c.sock.Pong(w.pong, c.deadline(w.by))
		}
		if w.pingDue && err == nil {
			err = c.sock.Ping(c.deadline(w.by))
			ping.Reset(c.opt.PingInterval)
		}
		if w.have && err == nil {
			err = c.writeItem(w)
		}
		if err != nil {
			c.broken(err)
			return
		}
		if !w.have {
			<-c.wake
		}
	}
}

// deadline of the next write: by, when the connection ends.
func (c *Conn) deadline(by time.Time) time.Time {
	return earlier(time.Now().Add(c.opt.WriteTimeout), by)
}

func (c *Conn) writeItem(w work) error {
	n := c.opt.Counters
	text := w.item.Value
	switch w.item.Kind {
	case queue.Event:
		n.Events.Add(1)
	case queue.Gap:
		n.Gaps.Add(1)
		text = gapFrame(w.epoch, w.item.From, w.item.To, GapSlow)
	}
	n.BytesOut.Add(int64(len(text)))
	return c.sock.WriteFrame(text, c.deadline(w.by))
}

// broken gives the connection up after a write that failed.
func (c *Conn) broken(err error) {
	c.update(func(s *state) {
		s.fail(&CloseError{Code: CloseAbnormal, Err: err})
		s.gone = true
	})
	c.sock.Close()
}

// sayClose writes the close frame and leaves the peer a moment to answer it.
func (c *Conn) sayClose(by time.Time) {
	var end CloseError
	c.update(func(s *state) { end, s.gone = *s.end, true })
	if end.Code == CloseAbnormal {
		c.sock.Close()
		return
	}
	code := end.Code
	if code == 1005 { // the peer's close frame had no code
		code = CloseNormal
	}
	now := time.Now()
	by = by.Add(c.opt.CloseTimeout)
	// The library may have said it already (1002, 1009): that is no failure,
	// and what else fails here ends the same way.
	_ = c.sock.WriteClose(code, end.Text, earlier(now.Add(c.opt.CloseTimeout), by))
	c.sock.EndReads(now.Add(c.opt.CloseTimeout))
}

// gapFrame is the notification that stands for dropped events. Its own number
// is that of the last one, so that a client that resumes goes on behind it.
func gapFrame(epoch string, from, to int64, reason GapReason) []byte {
	e, err := EventGap.New("", "", GapData{From: from, To: to, Reason: reason})
	if err == nil {
		e.Epoch, e.Seq, e.Time = epoch, to, time.Now().UTC()
		var text []byte
		if text, err = json.Marshal(notification{Version: "2.0", Method: EventMethod, Params: e}, outgoing); err == nil {
			return text
		}
	}
	panic("encode gap: " + err.Error()) // three numbers and a constant always encode
}
