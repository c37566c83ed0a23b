//go:build !linux || portable

package pinned

import (
	"errors"
	"os"
)

// CopyRange is errors.ErrUnsupported: nothing is copied in the kernel here.
func (p *File) CopyRange(*os.File, int64, int) (int, error) { return 0, errors.ErrUnsupported }

// Data knows of no holes: all of the rest is data.
func (p *File) Data(off int64) (from, to int64) { return off, max(off, p.Info.Size) }

// NoDefaultACL does nothing: access lists are not looked at on this system.
func NoDefaultACL(*os.File) error { return nil }

// SyncTree does nothing: each file was made durable with [SyncAlone].
func SyncTree(*os.File) error { return nil }

// SyncAlone makes one file of a tree durable.
func SyncAlone(f *os.File) error { return f.Sync() }
