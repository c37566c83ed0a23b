package provider

import "sync"

// hashes remembers the hash of contents by their stamp, so that a version that
// was made without reading (stat, listDir) can still be found equal after a
// change of metadata alone. Filled by complete reads and by own publications.
//
// It holds at most 2*hashesPerGeneration entries: when the young generation is
// full it becomes the old one and the old one is forgotten; an entry that is
// asked for becomes young again.
type hashes struct {
	mu         sync.Mutex
	young, old map[stamp]known
}

type known struct {
	sum digest
	// unsure: two contents were seen under this stamp, inside one tick.
	unsure bool
}

const hashesPerGeneration = 4096

func (h *hashes) record(s stamp, sum digest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.find(s)
	if ok && k.sum != sum {
		k.unsure = true
	} else if !ok {
		k = known{sum: sum}
	}
	h.put(s, k)
}

func (h *hashes) lookup(s stamp) (digest, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.find(s)
	if !ok || k.unsure {
		return digest{}, false
	}
	h.put(s, k)
	return k.sum, true
}

func (h *hashes) find(s stamp) (known, bool) {
	if k, ok := h.young[s]; ok {
		return k, true
	}
	k, ok := h.old[s]
	return k, ok
}

func (h *hashes) put(s stamp, k known) {
	if h.young == nil {
		h.young = make(map[stamp]known)
	}
	if _, ok := h.young[s]; !ok && len(h.young) >= hashesPerGeneration {
		h.old, h.young = h.young, make(map[stamp]known)
	}
	h.young[s] = k
}

// len is the number of entries held.
func (h *hashes) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.young) + len(h.old)
}
