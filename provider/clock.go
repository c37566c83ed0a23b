package provider

import "time"

// Clock is the file system's clock: the one place where the provider learns
// how fine the times of files are. Tests replace it by a coarser one.
type Clock interface {
	// Now is the time that a file changed now would be stamped with, or
	// earlier, in nanoseconds since 1970.
	Now() int64
	// Tick is the time between two stamps that differ; above zero.
	Tick() time.Duration
	// Stamp is the time of a file as this clock would have stamped it: the
	// argument itself, or the tick before it.
	Stamp(ns int64) int64
}

// racy tells whether a file with these times may change once more without its
// times showing it: one of them lies within two ticks of the look at it
// (decision D5; facts/kernels section 4: below Linux 6.13 a
// rewrite inside one tick leaves size, mtime and ctime as they were).
//
// before is the clock before the look. The look may have come long after it,
// on a machine that stood still between the two; a time past it is compared
// with the clock of now.
func racy(c Clock, before int64, s stamp) bool {
	span := 2 * int64(c.Tick())
	if wholeSeconds(s) {
		span = 2 * int64(2*time.Second)
	}
	after := before
	if max(s.mtime, s.ctime) > before+span {
		after = c.Now()
	}
	young := func(t int64) bool { return before-span <= t && t <= after+span }
	return young(s.mtime) || young(s.ctime)
}

func near(a, b, span int64) bool { return a-b <= span && b-a <= span }

// wholeSeconds: file systems whose times have seconds only (FAT: two of them)
// show it in both times at once.
func wholeSeconds(s stamp) bool {
	return s.mtime%int64(time.Second) == 0 && s.ctime%int64(time.Second) == 0
}
