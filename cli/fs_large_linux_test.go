package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Files and directories of any size: streamed, by ranges, by pages.
func TestLargeFilesAndDirectories(t *testing.T) {
	h := newHouse(t)
	text := bytes.Repeat([]byte("ein längerer Text, größer als jede Nachricht\n"), 18<<20/45)
	bin := bytes.Repeat([]byte("\x00\x01\xff\xfe\x7f"), 13<<20/5)
	h.file(h.ws, "big.txt", string(text), 0o644)
	h.file(h.ws, "big.bin", string(bin), 0o644)
	var names strings.Builder
	for i := range 4001 { // three pages
		name := fmt.Sprintf("%05d", i)
		h.file(h.ws, "many/"+name, "", 0o644)
		names.WriteString(name + "\n")
	}
	for i := range 2000 { // one page, exactly full
		h.file(h.ws, fmt.Sprintf("full/%05d", i), "", 0o644)
	}
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.serve()
		}
		if r := h.want(h.do("fs", "read", "big.txt"), 0); r.stdout != string(text) {
			t.Errorf("%s: %d bytes of text, want %d", way, len(r.stdout), len(text))
		}
		if r := h.want(h.do("fs", "read", "big.bin", "--bytes"), 0); r.stdout != string(bin) {
			t.Errorf("%s: %d bytes, want %d", way, len(r.stdout), len(bin))
		}
		for _, args := range [][]string{{"big.txt"}, {"big.bin", "--bytes"}} {
			r := h.want(h.do(append([]string{"fs", "read", "--json"}, args...)...), 1)
			if h.object(r.stdout)["data"].(map[string]any)["code"] != "FS_TOO_LARGE" {
				t.Error(r.stdout)
			}
		}
		if r := h.want(h.do("fs", "ls", "many"), 0); r.stdout != names.String() {
			t.Errorf("%s: %d lines", way, strings.Count(r.stdout, "\n"))
		}
		if l := h.objects(h.want(h.do("fs", "ls", "full", "--json"), 0).stdout); len(l) != 2000 || l[1999]["name"] != "01999" {
			t.Errorf("%s: %d entries", way, len(l))
		}
	}
}
