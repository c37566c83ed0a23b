package api

import "context"

// batch gathers the answers to one batch; JSON-RPC 2.0 section 6 wants them in
// one array. It is guarded by Conn.mu.
//
// The reader holds one share until it has taken the batch apart, and every call
// of it that runs holds one. Who holds the last share sends the array.
type batch struct {
	shares int
	parts  [][]byte
	size   int
	limit  int // of the array, in bytes
	after  []func()
}

// add takes one answer. It returns false when that would make the array too
// large; the caller then adds a short one, which must be taken.
func (b *batch) add(text []byte, must bool) bool {
	if text == nil { // of a notification
		return true
	}
	if !must && b.size+len(text) > b.limit {
		return false
	}
	b.size += len(text) + 1
	b.parts = append(b.parts, text)
	return true
}

// join makes the array, or nil when nothing is to be answered. Only the holder
// of the last share may call it, and needs no lock: nobody else is left.
func (b *batch) join() []byte {
	if len(b.parts) == 0 {
		return nil
	}
	out := make([]byte, 0, b.size+1)
	sep := byte('[')
	for _, p := range b.parts {
		out = append(append(out, sep), p...)
		sep = ','
	}
	b.parts = nil
	return append(out, ']')
}

// receiveBatch carries out a batch.
func (c *Conn) receiveBatch(ctx context.Context, messages []message) {
	b := &batch{shares: 1, limit: int(c.opt.Limits.MaxReplyBytes)}
	c.update(func(s *state) { s.receiving = true })
	for i := range messages {
		text := c.carryOut(ctx, &messages[i], b)
		c.update(func(*state) { b.add(text, true) })
	}
	var last bool
	c.update(func(s *state) {
		if last = b.shares == 1; !last {
			b.shares--
			s.receiving = false
		}
	})
	if last {
		c.sendNow(b.join(), func(s *state) { s.receiving = false })
		for _, f := range b.after {
			f()
		}
	}
}

// settle adds the answer of a call to its batch. Unless the call is the last
// one, that ends it: its slot is free. The last one gets the whole array and
// still holds its slot.
func (c *Conn) settle(k *call, ok bool, text []byte, b *batch) (whole []byte, last bool) {
	add := func(text []byte, must bool) (fits bool) {
		c.update(func(s *state) {
			if fits = b.add(text, must); !fits {
				return
			}
			b.after = append(b.after, k.after...)
			if last = b.shares == 1; !last {
				b.shares--
				c.free(s, k, ok)
			}
		})
		return fits
	}
	if !add(text, false) {
		k.after = nil
		add(errorFrame(k.id, tooLarge(len(text), c.opt.Limits.MaxReplyBytes)), true)
	}
	if !last {
		return nil, false
	}
	return b.join(), true
}
