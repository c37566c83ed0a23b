package daemon_test

import (
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// E12 oh-my-pi#11792: a model writes what it was shown, with the footer of the
// read. It is told; another session, which has not read that, is not.
func TestCaseE12FooterIsWrittenBack(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	f := client.NewFiles(c, h.open(c, fence.WorkspaceWrite).SessionID)
	other := client.NewFiles(c, h.open(c, fence.WorkspaceWrite).SessionID)
	write := func(f *client.Files, name, text string) provider.WriteOutcome {
		t.Helper()
		o, err := f.WriteText(h.ctx(), at(t, h, f, name), text, provider.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	write(f, "f", strings.Repeat("line\n", 3000))
	r, err := f.ReadLines(h.ctx(), at(t, h, f, "f"), provider.LineWindow{Limit: 3})
	if err != nil || r.Footer == "" {
		t.Fatalf("%q, %v", r.Footer, err)
	}
	for _, tt := range []struct {
		name, text string
		by         *client.Files
		warns      bool
	}{
		{"footer", "line\nline\nline\n" + r.Footer, f, true},
		{"footer and line break", "line\n\n" + r.Footer + "\r\n", f, true},
		{"indented", "line\n  " + r.Footer + "\n", f, true},
		{"alone", r.Footer, f, true},
		{"not the last line", r.Footer + "\nline\n", f, false},
		{"a part of the line", "see " + r.Footer, f, false},
		{"none", "line\n", f, false},
		{"empty", "", f, false},
		{"another session", "line\n" + r.Footer, other, false},
	} {
		if o := write(tt.by, "f2", tt.text); (o.Warning != "") != tt.warns {
			t.Errorf("%s: warning %q", tt.name, o.Warning)
		}
		holds(t, h.ws+"/f2", tt.text)
	}
}
