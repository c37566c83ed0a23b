package daemon_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/providertest"
)

// mute are the rows of the contract that cannot be had over the wire, and why:
// JSON is UTF-8, and so are the names and texts in it.
var mute = []string{
	"editText/full/new_text_that_is_none", // the client says FS_NOT_TEXT itself
	"editText/ws/new_text_that_is_none",
	"pure",                        // a key that is no UTF-8
	strangeNames,                  // as is a name in a change
	"writeText/bytes_as_they_are", // content that is none
}

const strangeNames = "watch/entries/strange_names"

// The whole contract holds behind the socket too.
func TestContractOverTheSocket(t *testing.T) {
	// In memory where there is such a directory: the many small writes cost
	// nothing there. The home with its trash is there too.
	dir := "/var/tmp"
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		dir = "/dev/shm"
		t.Setenv("TMPDIR", dir)
	}
	h := newHouseIn(t, dir).start()
	var mu sync.Mutex
	var silent []string
	note := func(test string) {
		mu.Lock()
		defer mu.Unlock()
		silent = append(silent, strings.TrimPrefix(test, t.Name()+"/"))
	}
	providertest.Run(t, func(t *testing.T) provider.Provider {
		if strings.HasSuffix(t.Name(), strangeNames) {
			note(t.Name())
			t.Skip("SKIP: a name that is no UTF-8 cannot travel")
		}
		return newRemote(t, h, note)
	})
	slices.Sort(silent)
	want := mute
	silent = slices.Compact(silent)
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") { // a part of the rows
		want = slices.DeleteFunc(slices.Clone(mute), func(row string) bool { return !slices.Contains(silent, row) })
	}
	if !slices.Equal(silent, want) {
		t.Errorf("rows that could not travel: %q, want %q", silent, want)
	}
}
