package scratch

import "os"

// owner names a process so that a reused pid is told apart: pids repeat, also
// after a reboot. On systems without a process table that we can read, start
// and boot are zero, and only the lock tells.
type owner struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"` // clock ticks since boot, proc(5) stat field 22
	BootID    string `json:"bootId"`
	// PIDNamespace: in another container the same number is another process.
	PIDNamespace string `json:"pidNs,omitzero"`
}

// liveness is what is known of a process.
type liveness int

const (
	unknown liveness = iota
	dead
	alive
)

// self names this process.
func self() owner {
	pid := os.Getpid()
	return owner{PID: pid, StartTime: startTime(pid), BootID: bootID(), PIDNamespace: pidNamespace()}
}

// state tells whether the process lives here and now.
func (o owner) state() liveness {
	boot := bootID()
	if o.PID <= 0 || o.BootID == "" || boot == "" || o.StartTime == 0 {
		return unknown
	}
	if o.BootID != boot || o.PIDNamespace != pidNamespace() {
		// Before a reboot of this machine, or on another machine or in another
		// container that shares the file system: nothing here can tell which.
		return unknown
	}
	if startTime(o.PID) == o.StartTime {
		return alive
	}
	return dead
}
