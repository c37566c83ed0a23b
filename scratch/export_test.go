package scratch

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
