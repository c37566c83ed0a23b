package record_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/trash/record"
)

func TestParseInfo(t *testing.T) {
	day := time.Date(2004, 8, 31, 22, 32, 8, 0, time.Local)
	for _, c := range []struct {
		name, text string
		want       record.Info
		bad        bool
	}{
		{name: "T14 as the specification has it", text: "[Trash Info]\nPath=foo/bar/meow.bow-wow\nDeletionDate=20040831T22:32:08\n", want: record.Info{Path: "foo/bar/meow.bow-wow", Deleted: day}},
		{name: "T14 any order, other keys", text: "[Trash Info]\nX=1\nDeletionDate=2004-08-31T22:32:08\n# c\nPath=/a\n", want: record.Info{Path: "/a", Deleted: day}},
		{name: "T14 the first of a key counts", text: "[Trash Info]\nPath=/a\nPath=/b\nDeletionDate=2004-08-31T22:32:08\nDeletionDate=2005-08-31T22:32:08\n", want: record.Info{Path: "/a", Deleted: day}},
		{name: "T14 a first date that cannot be read counts", text: "[Trash Info]\nPath=/a\nDeletionDate=x\nDeletionDate=2005-08-31T22:32:08\n", want: record.Info{Path: "/a"}},
		{name: "T14 no line feed at the end", text: "[Trash Info]\nPath=/a", want: record.Info{Path: "/a"}},
		{name: "T16 raw bytes", text: "[Trash Info]\nPath=/a%20b%25%2B%C3%A9%3Bc%ff%0A\n", want: record.Info{Path: "/a b%+é;c\xff\n"}},
		{name: "T16 a plus is a plus", text: "[Trash Info]\nPath=/a+b\n", want: record.Info{Path: "/a+b"}},
		{name: "copying", text: "[Trash Info]\nPath=/a\nX-Wattle-Pending=1\n", want: record.Info{Path: "/a", Pending: true}},
		{name: "empty", text: "", bad: true},
		{name: "another heading", text: "[Trash]\nPath=/a\n", bad: true},
		{name: "heading not first", text: "\n[Trash Info]\nPath=/a\n", bad: true},
		{name: "no path", text: "[Trash Info]\nDeletionDate=2004-08-31T22:32:08\n", bad: true},
		{name: "empty path", text: "[Trash Info]\nPath=\n", bad: true},
		{name: "half an escape", text: "[Trash Info]\nPath=/a%2\n", bad: true},
		{name: "no escape", text: "[Trash Info]\nPath=/a%zz\n", bad: true},
		{name: "NUL", text: "[Trash Info]\nPath=/a%00\n", bad: true},
		{name: "too long", text: "[Trash Info]\nPath=/" + strings.Repeat("a", record.MaxInfo), bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := record.ParseInfo([]byte(c.text))
			if (err != nil) != c.bad || got != c.want {
				t.Errorf("%+v %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct{ path, base, want string }{
		{"/a/b", "/v", "/a/b"},
		{"/a//b/./c", "/v", "/a/b/c"},
		{"sub/f", "/v", "/v/sub/f"},
		{"sub/f", "/", "/sub/f"},
		{"..", "/v", ""},
		{"/a/../b", "/v", ""},
		{"a/..", "/v", ""},
		{"a..b", "/v", "/v/a..b"},
		{"/", "/v", ""},
		{".", "/v", ""},
	} {
		got, err := record.Info{Path: c.path}.Resolve(c.base)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q below %s: %q %v, want %q", c.path, c.base, got, err, c.want)
		}
	}
}

func TestFormatInfo(t *testing.T) {
	i := record.Info{Path: "/a b%+é;c", Deleted: time.Date(2024, 2, 3, 4, 5, 6, 0, time.Local)}
	want := "[Trash Info]\nPath=/a%20b%25%2B%C3%A9%3Bc\nDeletionDate=2024-02-03T04:05:06\n"
	if got := string(i.Format()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte("[Trash Info]\nPath=/a%20b\nDeletionDate=2004-08-31T22:32:08\n"))
	f.Add([]byte("[Trash Info]\nPath=%\nX-Wattle-Pending=1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := record.ParseInfo(b)
		if err != nil {
			return
		}
		if i.Path == "" || strings.ContainsRune(i.Path, 0) {
			t.Fatalf("path %q", i.Path)
		}
		if p, err := i.Resolve("/base"); err == nil && (p[0] != '/' || slices.Contains(strings.Split(p, "/"), "..")) {
			t.Fatalf("resolved to %q", p)
		}
		// The last hour of a summer time is there twice, and years have four
		// digits: only what is written again must stay the same.
		again := i.Format()
		if len(again) > record.MaxInfo {
			return
		}
		j, err := record.ParseInfo(again)
		if err != nil || j.Path != i.Path || j.Pending != i.Pending || !bytes.Equal(j.Format(), again) {
			t.Fatalf("%q %v, from %q", j.Path, err, again)
		}
	})
}

func TestSizes(t *testing.T) {
	text := "8192 1391000000 dir\n12 -5 a%20b\n7 8 a b\n7 8\nx 8 n\n7 x n\n-1 8 n\n7 8 a%2Fb\n7 8 a/b\n7 8 ..\n7 8 %\n\n9223372036854775807 9 \xff"
	want := []record.Size{{8192, 1391000000, "dir"}, {12, -5, "a b"}, {7, 8, "a b"}, {9223372036854775807, 9, "\xff"}}
	got := record.ParseSizes([]byte(text))
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if s := string(record.FormatSizes(got)); s != "8192 1391000000 dir\n12 -5 a%20b\n7 8 a%20b\n9223372036854775807 9 %FF\n" {
		t.Errorf("%q", s)
	}
}

func FuzzParseSizes(f *testing.F) {
	f.Add([]byte("8192 1391000000 dir\n12 -5 a%20b\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all := record.ParseSizes(b)
		for _, s := range all {
			if s.Bytes < 0 || s.Name == "" || strings.ContainsAny(s.Name, "/\x00") {
				t.Fatalf("%+v", s)
			}
		}
		if again := record.ParseSizes(record.FormatSizes(all)); !slices.Equal(all, again) {
			t.Fatalf("%+v, then %+v", all, again)
		}
	})
}
