package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// SetHook calls f at the named points of an operation: "found" and "absent"
// (the target was looked at), "locked", "judged" (the guard holds), "opened"
// (before content is read), "staged" (the new content is complete), "checked"
// (right before the exchange), "exchanged", "restoring" (right before it is
// exchanged back). Deletes and moves add "prepared" (before anything is staged),
// "published" (the source of a move is still there) and "aside" (what is to be
// unlinked has its hidden name).
// Moves and copies of paths also have "surveyed" (the tree was
// looked through), "copied" (an entry of it was), "renamed", and "published"
// (the copy of a move has its name, and the source is still there).
func (l *Local) SetHook(f func(point string)) { l.hook = f }

// Lack takes features away: unnamed files, renaming without replacing, and
// exchanging, as file systems and systems have it that know none of them.
func (l *Local) Lack(unnamed, noReplace, exchange bool) {
	l.lacks = features{unnamed, noReplace, exchange}
}

// RacyVersion tells whether a version is marked racy and whether it carries a
// hash; ok is false when it is none.
func RacyVersion(v Version) (racy, hashed, ok bool) {
	t, ok := parseVersion(v)
	return t.racy, t.hashed, ok
}

// Reversion parses and writes again.
func Reversion(v Version) (Version, bool) {
	t, ok := parseVersion(v)
	return t.version(), ok
}

// Splice is splice; count is of an ambiguous match.
func Splice(raw, oldText, newText string, all bool, limit int64) (string, error) {
	return splice(raw, oldText, newText, all, limit)
}

// AmbiguousCount gives the count in an error of Splice, 0 if it is another.
func AmbiguousCount(err error) int {
	n, _ := err.(ambiguous)
	return int(n)
}

// Turns are locks to be tried alone.
type Turns struct{ t turns }

func (t *Turns) Lock(ctx context.Context, key string) (func(), error) { return t.t.lock(ctx, key) }

// State gives the keys in use and the callers that wait.
func (t *Turns) State() (keys, waiting int) {
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	return len(t.t.held), t.t.waiting
}

// FillHashes records n contents and tells how many are kept.
func FillHashes(n int) int {
	var h hashes
	for i := range n {
		h.record(stamp{ino: uint64(i)}, digest{byte(i)})
	}
	return h.len()
}

// TwoHashes records two contents under one stamp and tells whether one of them
// is believed.
func TwoHashes() bool {
	var h hashes
	h.record(stamp{ino: 1}, digest{1})
	h.record(stamp{ino: 1}, digest{2})
	_, ok := h.lookup(stamp{ino: 1})
	return ok
}

// Outright is outright for a call with this fence.
func Outright(l *Local, f *fence.Fence, path string, permanent bool) bool {
	return (&call{Local: l, fence: f}).outright(path, permanent)
}
