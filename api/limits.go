package api

// Limits are what a connection accepts. They travel in the reply to
// initialize, so that a client need not find them by running into them.
type Limits struct {
	// MaxFrameBytes is the largest message that is read; a larger one closes
	// the connection with 1009.
	MaxFrameBytes int64 `json:"maxFrameBytes"`
	// MaxReplyBytes is the largest message that is sent. The result of a call
	// that does not fit is answered with FS_TOO_LARGE and `completed: true`.
	MaxReplyBytes int64 `json:"maxReplyBytes"`
	// MaxBatch is how many requests one frame may hold.
	MaxBatch int `json:"maxBatch"`
	// MaxInFlight is how many calls of a connection run at once; the next one
	// is answered with BUSY.
	MaxInFlight int `json:"maxInFlight"`
	// MaxInFlightBytes is how much their parameters may hold together; a call
	// beyond it is answered with BUSY, unless it is alone.
	MaxInFlightBytes int64 `json:"maxInFlightBytes"`
	// MaxDepth is how deep JSON may nest.
	MaxDepth int `json:"maxDepth"`
	// EventQueueBytes is how far a reader may fall behind before events are
	// dropped behind a gap.
	EventQueueBytes int64 `json:"eventQueueBytes"`
}

// DefaultLimits are the limits of PROTOCOL section 1 and
// facts/conventions section 9, rule 6.
func DefaultLimits() Limits {
	return Limits{
		MaxFrameBytes:    16 << 20,
		MaxReplyBytes:    64 << 20,
		MaxBatch:         50,
		MaxInFlight:      64,
		MaxInFlightBytes: 64 << 20,
		MaxDepth:         64,
		EventQueueBytes:  4 << 20,
	}
}

// orDefaults fills what is not set.
func (l Limits) orDefaults() Limits {
	d := DefaultLimits()
	l.MaxFrameBytes = positive(l.MaxFrameBytes, d.MaxFrameBytes)
	l.MaxReplyBytes = positive(l.MaxReplyBytes, d.MaxReplyBytes)
	l.MaxBatch = positive(l.MaxBatch, d.MaxBatch)
	l.MaxInFlight = positive(l.MaxInFlight, d.MaxInFlight)
	l.MaxInFlightBytes = positive(l.MaxInFlightBytes, d.MaxInFlightBytes)
	l.MaxDepth = positive(l.MaxDepth, d.MaxDepth)
	l.EventQueueBytes = positive(l.EventQueueBytes, d.EventQueueBytes)
	return l
}

func positive[N int | int64](n, or N) N {
	if n > 0 {
		return n
	}
	return or
}
