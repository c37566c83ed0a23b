package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/trash/record"
)

const patchAnew = "read the file again, and make the patch from what it holds now"

// patchHints are for what a patch meets beside hunks that do not fit.
var patchHints = map[string]string{
	string(provider.CodePatchMismatch): patchAnew,
	string(provider.CodeStaleVersion):  patchAnew,
	string(provider.CodeAlreadyExists): "a file that is there is replaced with --overwrite, a directory never",
	record.CodeUnavailable:             "--permanent deletes outright",
}

func newFSPatch(w *world) *cobra.Command {
	var f fileFlags
	var o provider.ApplyOptions
	var partial bool
	c := action("patch", "apply a patch of any number of files, read from stdin: all of it or nothing", `  wattle fs patch --dry-run < change.patch
  wattle fs patch <<'END'
  *** Begin Patch
  *** Update File: notes.md
  @@
  -hello
  +goodbye
  *** End Patch
  END`, 0, 0,
		func(cmd *cobra.Command, _ []string) error {
			if o.Compat != "" && o.Compat != provider.CompatCodex {
				return usage(cmd, "--compat %s: only %s is known", o.Compat, provider.CompatCodex)
			}
			if partial {
				o.Atomic = new(bool)
			}
			text, err := w.text("applyPatch", "")
			if err != nil {
				return err
			}
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (provider.PatchReport, error) {
				o := o
				o.Cwd = here()
				return ask(ctx, s, api.FSApplyPatch, api.FSApplyPatchParams{SessionID: s.id, Patch: text, ApplyOptions: o}, (*daemon.Session).ApplyPatch)
			})
			if err != nil {
				return w.unpatched(err, f.json)
			}
			return w.patched(&r, o.Compat != "", f.json)
		})
	f.add(c)
	fl := c.Flags()
	fl.StringVar(&o.Compat, "compat", "", "reproduce the results of `codex`: operations one by one, files replaced")
	fl.BoolVar(&partial, "partial", false, "do the operations one by one, and keep what was done before a failure")
	fl.BoolVar(&o.Overwrite, "overwrite", false, "let added and moved files replace others")
	fl.BoolVar(&o.DryRun, "dry-run", false, "decide everything and change nothing")
	fl.BoolVar(&o.Permanent, "permanent", false, "delete outright, not to the trash")
	complete(c, "compat", provider.CompatCodex)
	return c
}

// patched prints the report of a patch: a line for each operation, or what
// Codex prints. One that stopped half-way is a failure.
func (w *world) patched(r *provider.PatchReport, codex, asJSON bool) error {
	err := w.result(asJSON, r, func() error {
		for i := range r.Operations {
			w.told(r.Operations[i].LinksBroken, r.Operations[i].MetadataLost)
		}
		if !codex {
			return w.bytes(operations(r))
		}
		if r.Stopped {
			w.reported(r)
		}
		return w.print("%s", printableLines(r.Summary))
	})
	if err != nil || !r.Stopped {
		return err
	}
	why := advised(stoppedBy(r), patchHints)
	if asJSON {
		return exitStatus(wrap(why).(*failed).status(false))
	}
	return why
}

// stoppedBy is the failure of the operation at which a patch stopped.
func stoppedBy(r *provider.PatchReport) error {
	for _, o := range r.Operations {
		if o.Failure != nil {
			return api.NewError(string(o.Failure.Code), o.Failure.Message)
		}
	}
	return api.NewError(string(provider.CodeIOError), "applyPatch: not everything was done")
}

// unpatched tells what became of every operation of a patch that failed.
func (w *world) unpatched(err error, asJSON bool) error {
	var data struct {
		Report *provider.PatchReport `json:"report"`
	}
	e := wire(err)
	decodeData(e, &data)
	switch {
	case data.Report == nil && e.Stable() == string(provider.CodePatchMismatch):
		return hinted(err, "wattle fs patch --help shows the form of a patch")
	case data.Report != nil && !asJSON:
		w.reported(data.Report)
		if !slices.ContainsFunc(data.Report.Operations, remains) {
			w.say("nothing was changed")
		}
	}
	return advised(err, patchHints)
}

// remains tells whether an operation of a patch has changed something.
func remains(o provider.ApplyOperation) bool {
	return o.State == provider.ApplyDone || o.State == provider.ApplyLeft
}

// reported is the report on stderr.
func (w *world) reported(r *provider.PatchReport) {
	for line := range bytes.Lines(operations(r)) {
		w.say("%s", bytes.TrimSuffix(line, []byte("\n")))
	}
}

// operations is a line for each operation of a patch.
func operations(r *provider.PatchReport) []byte {
	var b bytes.Buffer
	for _, o := range r.Operations {
		fmt.Fprintf(&b, "%-8s %-7s %s", o.State, o.Kind, printable(o.Path))
		if o.Destination != "" {
			b.WriteString(" -> " + printable(o.Destination))
		}
		if o.Trashed != nil {
			b.WriteString("  id " + printable(o.Trashed.ID))
		}
		if o.State == provider.ApplyFailed {
			fmt.Fprintf(&b, "  (line %d of the patch)", o.LineNumber)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
