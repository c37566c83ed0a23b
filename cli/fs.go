package cli

import (
	"github.com/spf13/cobra"
)

// newFS groups the file operations.
func newFS(w *world) *cobra.Command {
	c := group(w, "fs", "file operations inside a fence", `File operations inside a fence: through the daemon when one runs, in this
process otherwise. Both decide alike and write alike.`)
	c.AddCommand(newFSRead(w), newFSWrite(w), newFSEdit(w), newFSPatch(w), newFSList(w), newFSStat(w), newFSResolve(w),
		newFSRemove(w), newFSMove(w), newFSCopy(w), newFSMakeDir(w), newFSWatch(w))
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

// told warns of what a replacement could not keep.
func (w *world) told(links int, lost []string) {
	if links > 0 {
		w.say("%d other names of the file keep the old content", links)
	}
	for _, l := range lost {
		w.say("could not keep the file's %s", printable(l))
	}
}

// advised adds a hint to an error of one of these codes.
func advised(err error, hints map[string]string) error {
	if err == nil {
		return nil
	}
	if h := hints[wire(err).Stable()]; h != "" {
		return hinted(err, h)
	}
	return err
}
