package sandbox

import (
	"sync"

	"github.com/wattle-dev/wattle/fence"
)

// maxDenials is how many different denials one command can have on record; a
// child in a loop makes 20,000 equal ones in no time, so equal ones count.
const maxDenials = 256

// denialLog keeps the refusals of one command, equal ones together.
type denialLog struct {
	mu        sync.Mutex
	list      []fence.Denial
	index     map[string]int // Key → position in list; len ≤ maxDenials
	truncated bool
	// onNew is called for the first of equal denials, without the lock.
	onNew func(fence.Denial)
}

func newDenialLog(onNew func(fence.Denial)) *denialLog {
	return &denialLog{index: map[string]int{}, onNew: onNew}
}

func (l *denialLog) add(d fence.Denial) {
	key := d.Key()
	l.mu.Lock()
	if i, ok := l.index[key]; ok {
		if l.list[i].Count == 0 {
			l.list[i].Count = 1
		}
		l.list[i].Count++
		l.mu.Unlock()
		return
	}
	if len(l.list) >= maxDenials {
		l.truncated = true
		l.mu.Unlock()
		return
	}
	l.index[key] = len(l.list)
	l.list = append(l.list, d)
	l.mu.Unlock()
	if l.onNew != nil {
		l.onNew(d)
	}
}

// snapshot copies the record as it is now; the list is never nil.
func (l *denialLog) snapshot() (list []fence.Denial, truncated bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]fence.Denial{}, l.list...), l.truncated
}
