//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// each calls visit with every trash directory of ours that exists and passes
// the checks, each once, however many mounts show it. What exists and does not
// pass is a problem. It makes nothing. An error of visit ends it.
func (f *freedesktop) each(ctx context.Context, visit func(*place) error) ([]Problem, error) {
	var problems []Problem
	var seen []anchor.Info
	one := func(p *place, err error) error {
		if err != nil {
			if u := (*unfit)(nil); errors.As(err, &u) && !nothing(err) {
				problems = append(problems, Problem{u.path, strings.TrimPrefix(u.Error(), u.path+": ")})
			}
			return nil
		}
		defer p.close()
		if isOne(seen, p.self) {
			return nil
		}
		seen = append(seen, p.self)
		return visit(p)
	}
	if err := one(f.openHome(false)); err != nil {
		return problems, err
	}
	all, err := mounts()
	if err != nil {
		return append(problems, Problem{"/proc/self/mountinfo", err.Error()}), nil
	}
	done := map[string]bool{}
	for _, m := range all {
		if err := ctx.Err(); err != nil {
			return problems, err
		}
		// An automount point would be mounted by looking.
		if m.auto || done[m.point] {
			continue
		}
		done[m.point] = true
		top, err := anchor.OpenDir(m.point)
		if err != nil {
			continue // a file, or not ours to enter: nothing of ours is there
		}
		if err = one(f.openShared(top, m.point, false)); err == nil {
			err = one(f.openSide(top, m.point, false))
		}
		top.Close()
		if err != nil {
			return problems, err
		}
	}
	return problems, nil
}

// nothing tells whether an error means that there is no trash directory, or
// none that this user could have.
func nothing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission)
}

func (f *freedesktop) dirs() []string {
	var all []string
	// Without a context nothing ends it early, and what cannot be opened is not
	// ours.
	_, _ = f.each(context.Background(), func(p *place) error {
		all = append(all, p.dir.Path())
		return nil
	})
	return all
}

// names calls visit with every name in the trash once: those with a record,
// then data without one.
func (p *place) names(ctx context.Context, visit func(name string) error) error {
	err := stream(ctx, p.info, func(e anchor.Entry) error {
		name, ok := strings.CutSuffix(e.Name, record.InfoSuffix)
		if !ok || anchor.CheckName(name) != nil {
			return nil
		}
		return visit(name)
	})
	if err != nil {
		return err
	}
	return stream(ctx, p.files, func(e anchor.Entry) error {
		if p.info != nil {
			if _, err := p.info.Lstat(e.Name + record.InfoSuffix); err == nil {
				return nil
			}
		}
		return visit(e.Name)
	})
}

func (f *freedesktop) list(ctx context.Context) (Listing, error) {
	l := Listing{Entries: []record.Entry{}}
	var more []Problem
	problems, err := f.each(ctx, func(p *place) error {
		sizes := map[string]record.Size{}
		for _, s := range readSizes(p.dir) {
			sizes[s.Name] = s
		}
		err := p.names(ctx, func(name string) error {
			e, err := p.look(name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil // went meanwhile
			}
			if err != nil {
				more = append(more, Problem{filepath.Join(p.dir.Path(), "files", name), err.Error()})
				return nil
			}
			if len(l.Entries) >= MaxListed {
				l.Truncated = true
				return errEnough
			}
			entry := e.entry(p, sizes)
			if entry.State == record.Broken {
				more = append(more, Problem{filepath.Join(p.dir.Path(), "info", name+record.InfoSuffix), e.broken()})
			}
			l.Entries = append(l.Entries, entry)
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
			more = append(more, Problem{p.dir.Path(), err.Error()})
			return nil
		}
		return err
	})
	l.Problems = append(problems, more...)
	if err != nil && !errors.Is(err, errEnough) {
		return l, failed("list the trash", "", "", err)
	}
	return l, nil
}

// broken says what is wrong with an entry.
func (e *found) broken() string {
	switch {
	case e.bad != nil && !e.hasData:
		return fmt.Sprintf("there is no data, and the record cannot be read: %v", e.bad)
	case e.bad != nil:
		return fmt.Sprintf("the record cannot be read: %v", e.bad)
	case !e.hasData:
		return "there is no data; the thing may still be at " + e.original
	}
	return "it was not finished; the thing is still at " + e.original
}

// find opens the trash that has the entry of an id, and looks at it.
func (f *freedesktop) find(ctx context.Context, op, id string) (*place, *found, error) {
	where, what, ok := splitID(id)
	absent := failure(record.CodeNotFound, record.ReasonOperationFailed, op, "", "no entry "+id, nil)
	if !ok {
		return nil, nil, absent
	}
	var in *place
	var e *found
	_, err := f.each(ctx, func(p *place) error {
		return p.names(ctx, func(name string) error {
			if whereOf(p.self, name) != where {
				return nil
			}
			var err error
			if e, err = p.look(name); err != nil {
				return err
			}
			if in, err = p.again(); err != nil {
				return err
			}
			return errEnough
		})
	})
	switch {
	case in == nil && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return nil, nil, absent
	case in == nil:
		return nil, nil, failed(op, "", "", err)
	case whatOf(e.data) != what:
		in.close()
		return nil, nil, failure(codeStale, record.ReasonOperationFailed, op, "", "the entry is another thing now", nil)
	}
	return in, e, nil
}
