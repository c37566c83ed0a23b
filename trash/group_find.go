//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// groupPart is one entry of a group that was found, opened.
type groupPart struct {
	p     *place
	e     *found
	root  *anchor.Dir
	begun int64
}

func (g *groupPart) close() {
	g.root.Close()
	g.p.close()
}

// findGroup opens the entries of the latest group with an id.
func (f *freedesktop) findGroup(ctx context.Context, id string) ([]*groupPart, error) {
	var all []*groupPart
	_, err := f.each(ctx, func(p *place) error {
		if p.files == nil {
			return nil
		}
		return p.names(ctx, func(name string) error {
			if !strings.HasPrefix(name, groupPrefix) {
				return nil
			}
			if g := openGroup(p, name, id); g != nil {
				all = append(all, g)
			}
			return nil
		})
	})
	last := int64(0)
	for _, g := range all {
		last = max(last, g.begun)
	}
	return slices.DeleteFunc(all, func(g *groupPart) bool {
		if g.begun != last || err != nil {
			g.close()
			return true
		}
		return false
	}), err
}

// openGroup opens an entry if it is one of the group; nil if not.
func openGroup(p *place, name, id string) *groupPart {
	e, err := p.look(name)
	if err != nil || !e.hasData || !e.data.IsDir() || !e.hasRecord || e.bad != nil {
		return nil
	}
	g := &groupPart{e: e}
	if g.root, err = p.files.Walk(name); err != nil {
		return nil
	}
	head, err := g.read(nil)
	if err == nil && head.ID == id {
		g.begun = head.Begun
		if g.p, err = p.again(); err == nil {
			return g
		}
	}
	g.root.Close()
	return nil
}

func (g *groupPart) read(visit func(record.RemovedLine) error) (record.Removed, error) {
	list, err := g.root.Open(record.RemovedName, os.O_RDONLY, 0)
	if err != nil {
		return record.Removed{}, err
	}
	defer list.Close()
	if i, err := anchor.StatFile(list); err != nil || !i.IsRegular() {
		return record.Removed{}, errors.Join(err, errors.New("the list is not a regular file"))
	}
	return record.ReadRemoved(list, visit)
}
