package record_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/trash/record"
)

func TestRemovedThereAndBack(t *testing.T) {
	head := record.Removed{ID: "a b\n%\xff", Begun: 1234567890123}
	lines := []record.RemovedLine{
		{Kind: record.RemovedSeen, Path: ".", Mode: 0o1755, Mtime: -5, UID: 1, GID: 4294967294},
		{Kind: record.RemovedFile, Path: "a/b c", Tree: 1},
		{Kind: record.RemovedFile, Path: "/else/where\n\xfe", Tree: 12},
		{Kind: record.RemovedDir, Path: "a", Mode: 0o700, Mtime: 1 << 60, UID: 65534, GID: 65534},
		{Kind: record.RemovedLost, Path: "p", Why: "no space left on device"},
		{Kind: record.RemovedEnd, Kept: 3, Lost: 1},
	}
	text := head.Format()
	for _, l := range lines {
		text = append(text, l.Format()...)
	}
	var got []record.RemovedLine
	h, err := record.ReadRemoved(bytes.NewReader(text), func(l record.RemovedLine) error { got = append(got, l); return nil })
	if err != nil || h != head || !slices.Equal(got, lines) {
		t.Errorf("%v %+v\n%+v", err, h, got)
	}
	// Cut anywhere there is a whole head or an error, and no line that was not
	// written.
	for n := range text {
		var part []record.RemovedLine
		h, err := record.ReadRemoved(bytes.NewReader(text[:n]), func(l record.RemovedLine) error { part = append(part, l); return nil })
		if err == nil && h != head {
			t.Errorf("cut at %d: %+v", n, h)
		}
		for i, l := range part {
			if i < len(part)-1 && l != lines[i] {
				t.Errorf("cut at %d: %+v", n, l)
			}
		}
	}
	stop := errors.New("stop")
	if _, err := record.ReadRemoved(bytes.NewReader(text), func(record.RemovedLine) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestRemovedRefuses: lines that lead elsewhere, and what is no list.
func TestRemovedRefuses(t *testing.T) {
	head := string(record.Removed{ID: "x", Begun: 1}.Format())
	for _, l := range []string{
		"f 1 ..", "f 1 a/../../b", "f 1 /a/../b", "f 1 a//b", "f 1 a/", "f 1 /", "f 1 ", "f 0 a", "f -1 a", "f x a", "f 1 a b", "f 1 a%00b", "f 1 a%",
		"d 9 1 1 1 a", "d 700 1 1 a", "d 700 1 -1 1 a", "s 700 x 1 1 a", "e 1", "e a b", "n a", "x", "", "ff 1 a", "d 700 1 1 1 ./a",
	} {
		_, err := record.ReadRemoved(strings.NewReader(head+l+"\n"), func(r record.RemovedLine) error {
			t.Errorf("%q is %+v", l, r)
			return nil
		})
		if err != nil {
			t.Errorf("%q: %v", l, err)
		}
	}
	for _, s := range []string{"", "[Trash Info]\n\n", "[Wattle Removed]\nCommand=%\n\n", "[Wattle Removed]\nBegun=x\n\n", "[Wattle Removed]\nCommand=a"} {
		if _, err := record.ReadRemoved(strings.NewReader(s), nil); err == nil {
			t.Errorf("%q is a list", s)
		}
	}
}
