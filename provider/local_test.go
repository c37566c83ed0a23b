//go:build unix

package provider_test

import (
	"os"
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/providertest"
)

func newLocal(t *testing.T) *provider.Local {
	t.Helper()
	l, err := provider.NewLocal(provider.Config{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// On the disk, where most of the time is waiting for it: beside the other tests
// that wait. None of those looks at the umask, which some rows set.
func TestContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) provider.Provider { return newLocal(t) })
}

// The ways of publishing that other file systems need keep the contract too.
func TestContractWithLessFeatures(t *testing.T) {
	// In memory where there is such a directory: another file system, and the
	// many small writes cost nothing.
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	for name, lacks := range map[string][3]bool{
		"no unnamed files": {true, false, false},
		"no flags at all":  {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, func(t *testing.T) provider.Provider {
				l := newLocal(t)
				l.Lack(lacks[0], lacks[1], lacks[2])
				return l
			})
		})
	}
}
