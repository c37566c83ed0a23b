package scratch

import "os"

// DecodeMarker and DecodeRecord parse what lies on disk, for the fuzzers.
func DecodeMarker(b []byte) error { _, err := decodeMarker(b); return err }

func DecodeRecord(name string, b []byte) error { _, err := decodeRecord(name, b); return err }

// EntryName and DirName are the name rules.
func EntryName(name string) (dir, base string, err error) { return entryName(name) }

func DirName(workspace, session string, digits int) string {
	return dirName(workspace, session, digits)
}

// LooksOurs is the filter of the sweep.
func LooksOurs(name string) bool { return looksOurs(name) }

// OwnerGone is the decision of the sweep about the owner: "" to go on.
func OwnerGone(lock, who string, own bool) KeptReason {
	lockErr := map[string]error{"free": nil, "held": errLocked, "none": errNoLocks, "broken": os.ErrInvalid}[lock]
	state := map[string]liveness{"alive": alive, "dead": dead, "unknown": unknown}[who]
	if v := ownerGone(lockErr, state, own); v != nil {
		return v.reason
	}
	return ""
}
