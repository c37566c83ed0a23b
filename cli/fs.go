package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
)

// newFS groups the file operations.
func newFS(w *world) *cobra.Command {
	c := group(w, "fs", "file operations inside a fence", `File operations inside a fence: through the daemon when one runs, in this
process otherwise. Both decide alike and write alike.`)
	c.AddCommand(newFSRead(w), newFSWrite(w), newFSEdit(w), newFSList(w), newFSStat(w))
	return c
}

// fileFlags are the flags of every file operation.
type fileFlags struct {
	fence  fenceFlags
	socket string
	json   bool
}

func (f *fileFlags) add(cmd *cobra.Command) {
	f.fence.add(cmd)
	socketFlag(cmd, &f.socket)
	jsonFlag(cmd, &f.json, "print the result, or the error, as JSON")
}

// file names a file for a call. A relative path is taken from the current
// directory, not from the workspace: that is what a shell completes.
func file(session, path string) api.FileRef {
	wd, err := os.Getwd()
	if err != nil {
		wd = "" // an absolute path needs none, another one fails in the call
	}
	return api.FileRef{SessionID: session, Path: path, Cwd: wd}
}

// told warns of what a replacement could not keep.
func (w *world) told(links int, lost []string) {
	if links > 0 {
		w.say("%d other names of the file keep the old content", links)
	}
	for _, l := range lost {
		w.say("could not keep the file's %s", printable(l))
	}
}
