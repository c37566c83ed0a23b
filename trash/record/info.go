package record

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// InfoSuffix is the end of an information file's name (trash.md T13).
const InfoSuffix = ".trashinfo"

// MaxInfo is how long an information file may be, in bytes: more than the
// longest path with every byte encoded.
const MaxInfo = 64 << 10

const (
	heading    = "[Trash Info]"
	pathKey    = "Path="
	dateKey    = "DeletionDate="
	pendingKey = "X-Wattle-Pending="
)

// Info is the content of an information file.
type Info struct {
	// Path has the raw bytes of the name: absolute, or relative to the
	// directory that holds the trash directory. See [Info.Resolve].
	Path string
	// Deleted is local time, whole seconds; zero when the file has no date that
	// can be read.
	Deleted time.Time
	// Pending: when this was written the data was not whole, and the thing
	// still at its path. It counts only as long as something is there. Other
	// programs ignore the key.
	Pending bool
}

// ParseInfo reads an information file (T14 to T17). What is no such file is an
// error, also a path that cannot be decoded: to guess where something belongs is
// worse than to say so. A date that cannot be read is no error.
func ParseInfo(b []byte) (Info, error) {
	if len(b) > MaxInfo {
		return Info{}, fmt.Errorf("longer than %d bytes", MaxInfo)
	}
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	if string(first) != heading {
		return Info{}, fmt.Errorf("the first line is not %s", heading)
	}
	var i Info
	var hasPath, hasDate, hasPending bool
	for line := range strings.SplitSeq(string(rest), "\n") {
		// Of a key that is there twice the first counts (T14).
		if v, ok := strings.CutPrefix(line, pathKey); ok && !hasPath {
			p, err := decode(v)
			if err != nil {
				return Info{}, err
			}
			i.Path, hasPath = p, true
		}
		if v, ok := strings.CutPrefix(line, dateKey); ok && !hasDate {
			i.Deleted, hasDate = parseDate(v), true
		}
		if v, ok := strings.CutPrefix(line, pendingKey); ok && !hasPending {
			i.Pending, hasPending = v == "1", true
		}
	}
	if i.Path == "" {
		return Info{}, errors.New("it names no path")
	}
	return i, nil
}

// parseDate accepts the form with dashes, and that of the specification's
// example without them.
func parseDate(s string) time.Time {
	for _, form := range []string{DateForm, "20060102T15:04:05"} {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return t
		}
	}
	return time.Time{}
}

// Format writes the information file. The path must not be empty nor hold NUL.
func (i Info) Format() []byte {
	var b strings.Builder
	b.WriteString(heading + "\n" + pathKey)
	encode(&b, i.Path, "/")
	b.WriteByte('\n')
	if !i.Deleted.IsZero() {
		b.WriteString(dateKey + Date(i.Deleted) + "\n")
	}
	if i.Pending {
		b.WriteString(pendingKey + "1\n")
	}
	return []byte(b.String())
}

// Resolve is the absolute, clean original path. base is the directory that
// holds the trash directory, for a relative path (T15); ".." anywhere is an
// error.
func (i Info) Resolve(base string) (string, error) {
	for part := range strings.SplitSeq(i.Path, "/") {
		if part == ".." {
			return "", errors.New(`its path leads through ".."`)
		}
	}
	p := i.Path
	if !path.IsAbs(p) {
		p = path.Join(base, p)
	}
	p = path.Clean(p)
	if p == "/" || p == path.Clean(base) {
		return "", errors.New("its path names no entry of a directory")
	}
	return p, nil
}

// encode writes s with every byte as %XX but letters, digits, "-._~" and those
// of keep (T16).
func encode(b *strings.Builder, s, keep string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("-._~", c) >= 0, strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}

// decode undoes percent encoding and nothing else: "+" stays a plus (T16).
func decode(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return "", errors.New("a percent sign without two digits")
			}
			hi, ok1 := digit(s[i+1])
			lo, ok2 := digit(s[i+2])
			if !ok1 || !ok2 {
				return "", errors.New("a percent sign without two digits")
			}
			c = hi<<4 | lo
			i += 2
		}
		if c == 0 {
			return "", errors.New("a NUL byte in a path")
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

func digit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
