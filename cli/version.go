package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
)

// versionInfo is what --json prints.
type versionInfo struct {
	Version string `json:"version"`
	// Commit is empty when the build does not know it.
	Commit      string `json:"commit"`
	Modified    bool   `json:"modified,omitzero"` // built from a changed checkout
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	LandlockABI int    `json:"landlockAbi"` // of the running kernel, 0 for none
	// LandlockWhy says why there is none.
	LandlockWhy string `json:"landlockWhy,omitzero"`
}

func newVersion(w *world) *cobra.Command {
	var asJSON bool
	c := action("version", "print the version, and what the kernel has", `  wattle version --json`, 0, 0,
		func(*cobra.Command, []string) error { return w.printVersion(asJSON) })
	jsonFlag(c, &asJSON, "print one JSON object")
	return c
}

func (w *world) printVersion(asJSON bool) error {
	k := fence.ProbeKernel()
	v := versionInfo{Version: daemon.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, LandlockABI: k.LandlockABI, LandlockWhy: k.Why}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return w.result(asJSON, v, func() error {
		commit := v.Commit
		switch {
		case commit == "":
			commit = "unknown"
		case v.Modified:
			commit += " (modified)"
		}
		landlock := "none: " + v.LandlockWhy
		if v.LandlockABI > 0 {
			landlock = fmt.Sprint("ABI ", v.LandlockABI)
		}
		return w.print("wattle %s\ncommit    %s\ngo        %s %s/%s\nlandlock  %s\n", v.Version, commit, v.Go, v.OS, v.Arch, landlock)
	})
}
