package provider_test

import (
	"os"
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// Somebody saves a file in the moment after a copy or a move has replaced it:
// what was saved stays, and neither an older content comes back nor is anything
// left under a hidden name.
func TestSavedRightAfterACopy(t *testing.T) {
	for _, poor := range []bool{false, true} {
		for _, point := range []string{"exchanged", "renamed"} {
			p := newPlace(t, "", provider.Config{})
			if poor {
				p.l.Lack(true, true, true)
			}
			p.put("from", "copied")
			p.put("to", "old")
			p.once(point, func() {
				must(t, os.WriteFile(p.O+"/n", []byte("saved"), 0o644))
				must(t, os.Rename(p.O+"/n", p.W+"/to"))
			})
			o, err := p.l.CopyPath(t.Context(), p.f, "from", "to", provider.CopyPathOptions{Overwrite: true})
			must(t, err)
			want := "saved"
			if poor != (point == "renamed") {
				want = "copied" // the point is not on this way
			}
			if p.get("to") != want || p.get("from") != "copied" || o.Replaced != "deleted" {
				t.Errorf("few features %v, %s: %q, %+v", poor, point, p.get("to"), o)
			}
			p.only("from", "to")
		}
	}
}
