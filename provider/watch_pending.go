package provider

import (
	"strings"

	"github.com/wattle-dev/wattle/provider/internal/dirwatch"
)

// pendingNames is how many names a watch remembers while its receiver is busy.
// More are not remembered one by one: then everything is to be looked at.
const pendingNames = 1024

// pending is what a watch has to tell. The names are told in the order in which
// they changed first.
type pending struct {
	order []string
	// unsure: all that is known of the name is a change of content, so it may
	// be none that the directory has.
	unsure map[string]bool
	lost   bool // names are missing; none are kept
	moved  bool // look whether the directory is still in its place
	gone   bool // it was removed; the last thing that is told
	broken error
}

// add collects a name, "" for the target itself.
func (p *pending) add(name string, unsure bool) {
	if p.lost {
		return // everything will be looked at
	}
	before, ok := p.unsure[name]
	switch {
	case ok:
		p.unsure[name] = before && unsure
	case len(p.order) == pendingNames:
		p.lose()
	default:
		if p.unsure == nil {
			p.unsure = map[string]bool{}
		}
		p.order = append(p.order, name)
		p.unsure[name] = unsure
	}
}

// lose forgets the names, because some are missing.
func (p *pending) lose() {
	p.order, p.unsure, p.lost = nil, nil, true
}

// item is one thing to tell or to look after.
type item struct {
	kind   ChangeKind // empty: only look where the directory is
	name   string
	unsure bool
	gone   bool
	broken error
}

// take gives the next item; ok is false when there is none.
func (p *pending) take() (it item, ok bool) {
	switch {
	case p.lost:
		// The rescan: the target as a whole comes right after.
		p.lost = false
		p.add("", false)
		return item{kind: Overflowed}, true
	case len(p.order) > 0:
		name := p.order[0]
		it = item{kind: Changed, name: name, unsure: p.unsure[name]}
		p.order = p.order[1:]
		delete(p.unsure, name)
		return it, true
	case p.moved:
		p.moved = false
		return item{}, true
	case p.gone, p.broken != nil:
		return item{kind: WatchFailed, gone: p.gone, broken: p.broken}, true
	}
	return item{}, false
}

// note collects an event of the watched directory. It is called by the source's
// goroutine and only takes the lock of the watch.
func (w *watch) note(e dirwatch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case dirwatch.Lost:
		w.pending.lose()
	case dirwatch.Moved:
		w.pending.moved = true
	case dirwatch.Gone:
		w.pending.gone = true
	case dirwatch.Broken:
		w.pending.broken = e.Err
	case dirwatch.Self:
		if w.only != "" {
			return // of the parent
		}
		w.pending.add("", false)
	default:
		name := e.Name
		if ours(name) || w.only != "" && name != w.only {
			return
		}
		if w.only != "" {
			name = ""
		}
		w.pending.add(name, e.Kind == dirwatch.Content && kernelName(e.Name))
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// ours tells whether it is the name of a file that a replacement needs for a
// moment.
func ours(name string) bool { return strings.HasPrefix(name, TempPrefix) }

// kernelName tells whether a name may be the one that Linux gives to a file
// without a name: "#" and its inode number. Files may really have such a name.
func kernelName(name string) bool {
	digits, ok := strings.CutPrefix(name, "#")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
