package dirwatch

import (
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// byPath is a Source on fsnotify.
type byPath struct {
	w    *fsnotify.Watcher
	done chan struct{}

	mu   sync.Mutex
	last ID
	ids  map[string]ID
	path map[ID]string
}

// OpenByPath begins a Source on what fsnotify finds on any system. What it does
// not do: a directory is watched by the path with which it was opened, so the
// caller must make sure afterwards that the path still leads to it; Moved is
// told as Gone; a removed directory whose parent is watched too may be told as
// an entry and as Gone in any order.
func OpenByPath(tell func(Event)) (Source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, &fs.PathError{Op: "watch", Path: "fsnotify", Err: err}
	}
	s := &byPath{w: w, done: make(chan struct{}), ids: map[string]ID{}, path: map[ID]string{}}
	go s.read(tell)
	return s, nil
}

// Add implements [Source].
func (s *byPath) Add(dir *anchor.Dir) (ID, error) {
	path := dir.Path()
	// The name is known before the first event can come.
	s.mu.Lock()
	id, ok := s.ids[path]
	if !ok {
		s.last++
		id = s.last
		s.ids[path], s.path[id] = id, path
	}
	s.mu.Unlock()
	// Without the lock: the events that fsnotify waits to deliver need it. A
	// failed one leaves its name behind, for which no event comes, until the
	// same path is added and removed.
	if err := s.w.Add(path); err != nil {
		return 0, &fs.PathError{Op: "watch", Path: path, Err: err}
	}
	return id, nil
}

// Remove implements [Source].
func (s *byPath) Remove(id ID) {
	s.mu.Lock()
	path := s.path[id]
	current := s.ids[path] == id
	delete(s.path, id)
	if current {
		delete(s.ids, path)
	}
	s.mu.Unlock()
	if current {
		_ = s.w.Remove(path) // fails when it is gone
	}
}

// Close implements [Source].
func (s *byPath) Close() { s.w.Close() }

// Done implements [Source].
func (s *byPath) Done() <-chan struct{} { return s.done }

func (s *byPath) read(tell func(Event)) {
	defer close(s.done)
	for {
		select {
		case e, ok := <-s.w.Events:
			if !ok {
				return
			}
			s.pass(e, tell)
		case err, ok := <-s.w.Errors:
			if !ok {
				return
			}
			// Other errors are of one directory and do not say of which.
			if err != nil {
				tell(Event{Kind: Lost, Err: err})
			}
		}
	}
}

// pass tells an event of a path as one of the directory at the path, and as one
// of an entry of its parent.
func (s *byPath) pass(e fsnotify.Event, tell func(Event)) {
	left := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	s.mu.Lock()
	self, isDir := s.ids[e.Name]
	parent, isEntry := s.ids[filepath.Dir(e.Name)]
	if isDir && left {
		// What is made there later is another directory.
		delete(s.ids, e.Name)
	}
	s.mu.Unlock()
	if isEntry && filepath.Dir(e.Name) != e.Name {
		kind := Content
		if left || e.Has(fsnotify.Create) {
			kind = Entry
		}
		tell(Event{ID: parent, Kind: kind, Name: filepath.Base(e.Name)})
	}
	switch {
	case isDir && left:
		tell(Event{ID: self, Kind: Gone})
	case isDir && e.Has(fsnotify.Chmod):
		tell(Event{ID: self, Kind: Self})
	}
}
