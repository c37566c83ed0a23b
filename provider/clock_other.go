//go:build !linux

package provider

import "time"

// systemClock assumes the coarsest tick that is usual: file times there are
// finer, but what feeds them is not documented.
type systemClock struct{}

func newSystemClock() Clock { return systemClock{} }

func (systemClock) Now() int64           { return time.Now().Add(-16 * time.Millisecond).UnixNano() }
func (systemClock) Tick() time.Duration  { return 16 * time.Millisecond }
func (systemClock) Stamp(ns int64) int64 { return ns }
