package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/provider"
)

func newFSRead(w *world) *cobra.Command {
	var f fileFlags
	var lines window
	c := action("read PATH", "print a text file", `  wattle fs read go.mod --offset 3 --limit 10`, 1, 1,
		func(cmd *cobra.Command, args []string) error {
			if err := lines.check(cmd); err != nil {
				return err
			}
			r, err := anywhere(cmd.Context(), w, &f.fence, f.socket, api.FSReadText,
				func(id string) api.FSReadTextParams { return api.FSReadTextParams{FileRef: file(id, args[0])} },
				func(s *daemon.Session, p api.FSReadTextParams) (provider.TextContent, error) {
					return s.ReadText(cmd.Context(), &p)
				})
			if err != nil {
				return err
			}
			r.Text = lines.cut(r.Text)
			return w.result(f.json, r, func() error { return w.print("%s", r.Text) })
		})
	f.add(c)
	c.Flags().IntVar(&lines.offset, "offset", 1, "begin with line `N`, counted from 1")
	c.Flags().IntVar(&lines.limit, "limit", 0, "print at most `N` lines")
	return c
}

// window is a range of lines.
type window struct{ offset, limit int }

func (l window) check(cmd *cobra.Command) error {
	switch {
	case l.offset < 1:
		return usage(cmd, "--offset %d: lines are counted from 1", l.offset)
	case l.limit < 0 || l.limit == 0 && cmd.Flags().Changed("limit"):
		return usage(cmd, "--limit %d: at least 1", l.limit)
	}
	return nil
}

// cut takes the lines out of a text, with their own line breaks. A text ends
// before an offset that it does not reach.
func (l window) cut(text string) string {
	for range l.offset - 1 {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return ""
		}
		text = text[i+1:]
	}
	if l.limit == 0 {
		return text
	}
	end := 0
	for range l.limit {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			return text
		}
		end += i + 1
	}
	return text[:end]
}
