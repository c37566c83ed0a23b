package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A group is what one command removed: a directory in the trash with the things
// beneath it, and in it a file of this name that says where they belong, one
// line each, every line written before its thing goes.
const RemovedName = ".wattle-removed"

const removedHeading = "[Wattle Removed]"

// Removed is the head of such a file.
type Removed struct {
	// ID names the command. Begun tells groups with one ID apart, and is the
	// same in all parts of one group, in nanoseconds since 1970.
	ID    string
	Begun int64
}

// RemovedKind is what a line says.
type RemovedKind byte

const (
	// RemovedFile: a file or link had the name Path; the very inode is in the
	// group, in the tree with the number Tree.
	RemovedFile RemovedKind = 'f'
	// RemovedDir: an empty directory was removed.
	RemovedDir RemovedKind = 'd'
	// RemovedSeen: what a directory was before the first thing went from it. Of
	// a directory with such a line it counts more than its RemovedDir.
	RemovedSeen RemovedKind = 's'
	// RemovedLost: a thing went that could not be kept; Why says why.
	RemovedLost RemovedKind = 'n'
	// RemovedEnd: the command has ended. Kept and Lost count what was kept and
	// what went all the same.
	RemovedEnd RemovedKind = 'e'
)

// RemovedLine is one line.
type RemovedLine struct {
	Kind RemovedKind
	// Path is relative to the directory that the group's record names as its
	// own, or absolute for what lay elsewhere.
	Path string
	Tree int
	// Of a directory; Mtime in nanoseconds since 1970.
	Mode     uint32
	Mtime    int64
	UID, GID uint32
	Why      string
	Kept     int64
	Lost     int64
}

// Format writes the head.
func (r Removed) Format() []byte {
	var b strings.Builder
	b.WriteString(removedHeading + "\nCommand=")
	encode(&b, r.ID, "")
	fmt.Fprintf(&b, "\nBegun=%d\n\n", r.Begun)
	return []byte(b.String())
}

// Format writes the line, with its line feed.
func (l RemovedLine) Format() []byte {
	var b strings.Builder
	b.WriteByte(byte(l.Kind))
	switch l.Kind {
	case RemovedFile:
		fmt.Fprintf(&b, " %d ", l.Tree)
		encode(&b, l.Path, "/")
	case RemovedDir, RemovedSeen:
		fmt.Fprintf(&b, " %o %d %d %d ", l.Mode, l.Mtime, l.UID, l.GID)
		encode(&b, l.Path, "/")
	case RemovedLost:
		b.WriteByte(' ')
		encode(&b, l.Path, "/")
		b.WriteByte(' ')
		encode(&b, l.Why, "/")
	case RemovedEnd:
		fmt.Fprintf(&b, " %d %d", l.Kept, l.Lost)
	}
	b.WriteByte('\n')
	return []byte(b.String())
}

// maxRemovedLine is more than two longest paths with every byte encoded.
const maxRemovedLine = 32 << 10

// ReadRemoved reads such a file and calls visit with every line. A line that is
// none is passed over: the last one may be a part of one. An error of visit ends
// it. With visit nil the head is read alone.
func ReadRemoved(r io.Reader, visit func(RemovedLine) error) (Removed, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxRemovedLine)
	var head Removed
	for n := 0; ; n++ {
		if !s.Scan() {
			return head, errors.Join(errors.New("its head is not whole"), s.Err())
		}
		line := s.Text()
		var err error
		switch {
		case n == 0 && line != removedHeading:
			return head, fmt.Errorf("the first line is not %s", removedHeading)
		case strings.HasPrefix(line, "Command="):
			head.ID, err = decode(line[len("Command="):])
		case strings.HasPrefix(line, "Begun="):
			head.Begun, err = strconv.ParseInt(line[len("Begun="):], 10, 64)
		}
		if err != nil {
			return head, err
		}
		if line == "" {
			break
		}
	}
	if visit == nil {
		return head, nil
	}
	for s.Scan() {
		l, err := parseRemoved(s.Text())
		if err != nil {
			continue
		}
		if err := visit(l); err != nil {
			return head, err
		}
	}
	return head, s.Err()
}

func parseRemoved(s string) (RemovedLine, error) {
	f := strings.Split(s, " ")
	bad := errors.New("no such line")
	if len(f[0]) != 1 {
		return RemovedLine{}, bad
	}
	l := RemovedLine{Kind: RemovedKind(f[0][0])}
	want, ok := map[RemovedKind]int{RemovedFile: 3, RemovedDir: 6, RemovedSeen: 6, RemovedLost: 3, RemovedEnd: 3}[l.Kind]
	if !ok || len(f) != want {
		return RemovedLine{}, bad
	}
	var errs [6]error
	switch l.Kind {
	case RemovedFile:
		l.Tree, errs[0] = strconv.Atoi(f[1])
		l.Path, errs[1] = decode(f[2])
	case RemovedDir, RemovedSeen:
		l.Mode, errs[0] = number(f[1], 8)
		l.Mtime, errs[1] = strconv.ParseInt(f[2], 10, 64)
		l.UID, errs[2] = number(f[3], 10)
		l.GID, errs[3] = number(f[4], 10)
		l.Path, errs[4] = decode(f[5])
	case RemovedLost:
		l.Path, errs[0] = decode(f[1])
		l.Why, errs[1] = decode(f[2])
	case RemovedEnd:
		l.Kept, errs[0] = strconv.ParseInt(f[1], 10, 64)
		l.Lost, errs[1] = strconv.ParseInt(f[2], 10, 64)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return RemovedLine{}, err
	}
	if l.Kind != RemovedEnd && !cleanPath(l.Path) || l.Kind == RemovedFile && l.Tree < 1 {
		return RemovedLine{}, bad
	}
	return l, nil
}

func number(s string, base int) (uint32, error) {
	n, err := strconv.ParseUint(s, base, 32)
	return uint32(n), err
}

// cleanPath: a path that leads somewhere else by "..", or is not as it was
// written, is none of ours. "." is the group's own directory.
func cleanPath(p string) bool {
	if p == "." {
		return true
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return p != ""
}
