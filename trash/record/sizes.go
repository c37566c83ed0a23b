package record

import (
	"strconv"
	"strings"
)

// Size is one line of the file directorysizes (T19).
type Size struct {
	// Bytes that the directory takes on the disk.
	Bytes int64
	// Mtime of the information file when the size was taken, seconds since
	// 1970. Another time there means that the line is about another thing.
	Mtime int64
	// Name in the files directory, raw bytes.
	Name string
}

// ParseSizes reads directorysizes. Lines that make no sense are left out: the
// file only saves a walk. Names may be encoded or plain.
func ParseSizes(b []byte) []Size {
	var all []Size
	for line := range strings.SplitSeq(string(b), "\n") {
		size, rest, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		mtime, name, ok := strings.Cut(rest, " ")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			continue
		}
		m, err := strconv.ParseInt(mtime, 10, 64)
		if err != nil {
			continue
		}
		name, err = decode(name)
		if err != nil || name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			continue
		}
		all = append(all, Size{Bytes: n, Mtime: m, Name: name})
	}
	return all
}

// FormatSizes writes directorysizes.
func FormatSizes(all []Size) []byte {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(strconv.FormatInt(s.Bytes, 10))
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(s.Mtime, 10))
		b.WriteByte(' ')
		encode(&b, s.Name, "")
		b.WriteByte('\n')
	}
	return []byte(b.String())
}
