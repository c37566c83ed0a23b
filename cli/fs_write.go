package cli

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

// maxContent bounds what is read from stdin into memory.
const maxContent = 256 << 20

// content reads the whole of stdin.
func (w *world) content(op, path string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(w.stdin, maxContent+1))
	if err != nil {
		return nil, fmt.Errorf("read content from stdin: %w", err)
	}
	if len(b) > maxContent {
		return nil, &provider.Error{Code: provider.CodeTooLarge, Op: op, Path: path, Detail: fmt.Sprintf("more than %d bytes on stdin", maxContent)}
	}
	return b, nil
}

// text is content that must be UTF-8: the wire carries no other text, and both
// ways are to answer alike.
func (w *world) text(op, path string) (string, error) {
	b, err := w.content(op, path)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", &provider.Error{Code: provider.CodeNotText, Op: op, Path: path, Detail: "the content on stdin is not UTF-8"}
	}
	return string(b), nil
}

func newFSWrite(w *world) *cobra.Command {
	var f fileFlags
	var ifAbsent bool
	var ifVersion string
	c := action("write PATH", "make a file, or replace it whole, with what is on stdin", `  echo hello | wattle fs write notes/new.txt --if-absent`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			var o provider.WriteOptions
			switch {
			case ifAbsent:
				o.Expected = &provider.WriteIntent{Kind: provider.CreateIfAbsent}
			case cmd.Flags().Changed("if-version"):
				if ifVersion == "" {
					return usage(cmd, "--if-version: an empty version")
				}
				o.Expected = &provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: provider.Version(ifVersion)}
			}
			text, err := w.text("writeText", args[0])
			if err != nil {
				return err
			}
			r, err := one(cmd.Context(), w, &f, func(ctx context.Context, s *files) (provider.WriteOutcome, error) {
				return ask(ctx, s, api.FSWriteText, api.FSWriteTextParams{FileRef: s.ref(args[0]), Content: text, WriteOptions: o}, (*daemon.Session).WriteText)
			})
			if err != nil {
				return err
			}
			return w.result(f.json, r, func() error {
				w.told(r.LinksBroken, r.MetadataLost)
				if r.Warning != "" {
					w.say("%s", r.Warning)
				}
				w.replaced("", r.Trashed)
				return w.print("%sd %s\n", r.Operation, printable(args[0]))
			})
		})
	f.add(c)
	c.Flags().BoolVar(&ifAbsent, "if-absent", false, "only if nothing is there")
	c.Flags().StringVar(&ifVersion, "if-version", "", "only if the file still has version `V`")
	c.MarkFlagsMutuallyExclusive("if-absent", "if-version")
	return c
}
