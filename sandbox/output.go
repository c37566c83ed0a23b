package sandbox

import (
	"sync"
)

// DefaultMaxOutput is how many bytes of a command's output are kept when the
// request does not say.
const DefaultMaxOutput = 4 << 20

// maxChunk bounds one chunk, so that a reader can take part of the output.
const maxChunk = 32 << 10

// chunkCost is what a kept chunk takes beside its bytes: without it a command
// that writes byte by byte could make us keep many times what was asked.
const chunkCost = 64

// output keeps the latest output of a command: chunks in order, bounded by
// bytes, the oldest dropped first. Writers never wait.
type output struct {
	mu      sync.Mutex
	chunks  []Chunk
	bytes   int // of chunks, each with chunkCost
	max     int
	nextSeq int64 // of the next chunk; first is 1
	dropped bool
	// changed is closed and replaced whenever something was added or ended.
	changed chan struct{}
}

func newOutput(maxBytes int) *output {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxOutput
	}
	return &output{max: maxBytes, nextSeq: 1, changed: make(chan struct{})}
}

// add keeps a copy of data and returns the chunk.
func (o *output) add(s Stream, data []byte) Chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := Chunk{Seq: o.nextSeq, Stream: s, Data: append([]byte(nil), data...)}
	o.nextSeq++
	o.chunks = append(o.chunks, c)
	o.bytes += len(c.Data) + chunkCost
	for o.bytes > o.max && len(o.chunks) > 1 {
		o.bytes -= len(o.chunks[0].Data) + chunkCost
		o.chunks[0] = Chunk{}
		o.chunks = o.chunks[1:]
		o.dropped = true
	}
	o.wake()
	return c
}

// wake must be called with mu held.
func (o *output) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// poke wakes waiting readers because something else than output has changed.
func (o *output) poke() {
	o.mu.Lock()
	o.wake()
	o.mu.Unlock()
}

// read returns chunks after a sequence number, at least one if there is any,
// else at most maxBytes of them; next is the number to continue after;
// truncated says that chunks after the number were dropped. changed is closed
// at the next change.
func (o *output) read(after int64, maxBytes int) (chunks []Chunk, next int64, truncated bool, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	chunks = []Chunk{}
	next = after
	first := o.nextSeq
	if len(o.chunks) > 0 {
		first = o.chunks[0].Seq
	}
	truncated = o.dropped && after+1 < first
	total := 0
	for _, c := range o.chunks {
		if c.Seq <= after {
			continue
		}
		if total > 0 && maxBytes > 0 && total+len(c.Data) > maxBytes {
			break
		}
		total += len(c.Data)
		chunks = append(chunks, c)
		next = c.Seq
	}
	return chunks, next, truncated, o.changed
}
