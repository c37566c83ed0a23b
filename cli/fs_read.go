package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

func newFSRead(w *world) *cobra.Command {
	var f fileFlags
	var lines provider.LineWindow
	var raw bool
	c := action("read PATH", "print a file: its text, a window of its lines, or its bytes", `  wattle fs read go.mod
  wattle fs read big.log --offset 2001 --limit 500
  wattle fs read logo.png --bytes > copy.png`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			window := cmd.Flags().Changed("offset") || cmd.Flags().Changed("limit")
			switch {
			case lines.Offset < 1:
				return usage(cmd, "--offset %d: lines are counted from 1", lines.Offset)
			case lines.Limit < 0 || lines.Limit == 0 && cmd.Flags().Changed("limit"):
				return usage(cmd, "--limit %d: at least 1", lines.Limit)
			case raw && window:
				return usage(cmd, "--bytes excludes --offset and --limit, which count lines")
			}
			return w.anywhere(cmd.Context(), &f, func(ctx context.Context, s *files) error {
				r := reading{w: w, s: s, path: args[0], json: f.json}
				switch {
				case window:
					return advised(r.lines(ctx, lines), readHints)
				case raw:
					return r.bytes(ctx)
				}
				return r.text(ctx)
			})
		})
	f.add(c)
	c.Flags().IntVar(&lines.Offset, "offset", 1, "begin with line `N`, counted from 1")
	c.Flags().IntVar(&lines.Limit, "limit", 0, "print `N` lines, 2000 at most")
	c.Flags().BoolVar(&raw, "bytes", false, "print the file as it is, text or not")
	return c
}

// readHints are for windows.
var readHints = map[string]string{string(provider.CodeNotText): "print it as it is with --bytes"}

// reading is one call of read.
type reading struct {
	w    *world
	s    *files
	path string
	json bool
}

// lines prints a window. What is said about it goes to stderr.
func (r *reading) lines(ctx context.Context, lines provider.LineWindow) error {
	out, err := ask(ctx, r.s, api.FSReadLines, api.FSReadLinesParams{FileRef: r.s.ref(r.path), LineWindow: lines}, (*daemon.Session).ReadLines)
	if err != nil {
		return err
	}
	return r.w.result(r.json, out, func() error {
		var b strings.Builder
		for _, l := range out.Lines {
			b.WriteString(l.Text)
			b.WriteByte('\n')
			if l.Cut {
				r.w.say("line %d is longer and was cut", l.Number)
			}
		}
		if err := r.w.print("%s", b.String()); err != nil {
			return err
		}
		r.w.say("%s", out.Footer)
		return nil
	})
}

// text prints a whole file of any size piece by piece. As JSON it is one
// object, so that its size is bounded.
func (r *reading) text(ctx context.Context) error {
	if r.json {
		out, err := ask(ctx, r.s, api.FSReadText, api.FSReadTextParams{FileRef: r.s.ref(r.path)}, (*daemon.Session).ReadText)
		if err != nil {
			return advised(err, map[string]string{codeTooLarge: "read a part with --offset and --limit, or leave --json out"})
		}
		return r.w.jsonLine(r.w.stdout, out)
	}
	t, err := r.open(ctx)
	if err != nil {
		return advised(err, readHints)
	}
	defer t.Close()
	for {
		piece, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return advised(err, readHints)
		}
		if err := r.w.bytes([]byte(piece)); err != nil {
			return err
		}
	}
}

// open begins a stream of the text.
func (r *reading) open(ctx context.Context) (provider.TextStream, error) {
	t, err := r.s.resolve(ctx, r.path)
	if err != nil {
		return nil, err
	}
	if r.s.remote != nil {
		return client.NewFiles(r.s.remote.Client, r.s.id).StreamText(ctx, t)
	}
	return r.s.local.StreamText(ctx, &api.FileRef{SessionID: r.s.id, Target: &t})
}

const (
	// rangeBytes is how much of a file is asked for at once.
	rangeBytes = 4 << 20
	// maxWhole is a cap that every daemon lowers to its own.
	maxWhole = 1 << 30
)

// bytes prints a whole file as it is, range by range. As JSON it is one object.
func (r *reading) bytes(ctx context.Context) error {
	if r.json {
		out, err := ask(ctx, r.s, api.FSReadBytes, api.FSReadBytesParams{FileRef: r.s.ref(r.path), MaxBytes: maxWhole}, (*daemon.Session).ReadBytes)
		if err != nil {
			return advised(err, map[string]string{codeTooLarge: "leave --json out: then a file of any size is printed"})
		}
		return r.w.jsonLine(r.w.stdout, out)
	}
	t, err := r.s.resolve(ctx, r.path)
	if err != nil {
		return err
	}
	p := api.FSReadByteRangeParams{FileRef: api.FileRef{SessionID: r.s.id, Target: &t}, ByteRange: provider.ByteRange{Length: rangeBytes}}
	var version provider.Version
	for {
		out, err := ask(ctx, r.s, api.FSReadByteRange, p, (*daemon.Session).ReadByteRange)
		if err != nil {
			return err
		}
		if version != "" && out.Version != version {
			return hinted(&provider.Error{Code: provider.CodeStaleVersion, Op: "readByteRange", Path: r.path,
				Detail: fmt.Sprintf("the file changed after %d bytes were printed", p.Offset)}, "read it again")
		}
		version = out.Version
		if err := r.w.bytes(out.Data); err != nil {
			return err
		}
		if len(out.Data) < rangeBytes {
			return nil
		}
		p.Offset += int64(len(out.Data))
	}
}
