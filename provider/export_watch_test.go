package provider

import "github.com/wattle-dev/wattle/provider/internal/dirwatch"

// HoldWatches stops the delivery of the kernel's events until release is
// called, as a machine that is too busy would.
func (l *Local) HoldWatches() (release func()) {
	l.watches.mu.Lock()
	return l.watches.mu.Unlock
}

// WatchByPath makes later watches use what other systems than Linux use. There
// must be none yet.
func (l *Local) WatchByPath() { l.watches.open = dirwatch.OpenByPath }

// WatchState gives the watches and the directories watched for them.
func (l *Local) WatchState() (watches, dirs int) {
	l.watches.mu.Lock()
	defer l.watches.mu.Unlock()
	if f := l.watches.feed; f != nil {
		dirs = len(f.places)
	}
	return l.watches.count, dirs
}
