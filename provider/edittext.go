package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// editing is one editText.
type editing struct {
	*call
	e EditRequest
	o EditOptions
}

// EditText implements [Provider].
func (l *Local) EditText(ctx context.Context, f *fence.Fence, t Target, e EditRequest, o EditOptions) (EditOutcome, error) {
	c, err := l.begin(ctx, f, "editText", t.DisplayPath)
	if err != nil {
		return EditOutcome{}, err
	}
	ed := editing{call: c, e: e, o: o}
	var out EditOutcome
	err = c.mutate(t, func(a aim) (err error) {
		out, err = ed.try(a)
		return err
	})
	if err != nil {
		return EditOutcome{}, err
	}
	return out, nil
}

func (ed *editing) try(a aim) (EditOutcome, error) {
	switch {
	case a.name == "":
		return EditOutcome{}, ed.notRegular()
	case a.link, len(a.missing) > 0:
		return EditOutcome{}, ed.stale(saysGone)
	}
	dir, err := ed.openAim(a.dir)
	if err != nil {
		return EditOutcome{}, err
	}
	defer dir.Close()
	p, err := ed.pin(dir, a.name)
	if absent(err) {
		return EditOutcome{}, ed.stale(saysGone)
	}
	if err != nil {
		return EditOutcome{}, err
	}
	defer p.Close()
	switch {
	case p.Info.IsSymlink() && ed.fence.Mode() != fence.FullAccess:
		return EditOutcome{}, errMoved{err: errBecameLink}
	case p.Info.IsSymlink():
		return EditOutcome{}, ed.stale("a symbolic link stands in its place")
	case !p.Info.IsRegular():
		return EditOutcome{}, ed.notRegular()
	}
	return ed.edit(dir, a, p)
}

func (ed *editing) edit(dir *anchor.Dir, a aim, p *pin) (EditOutcome, error) {
	how, sum := fresh, digest{}
	if g := ed.o.Expected; g != nil {
		how, sum = ed.judge(g.Version, stampOf(ed.clock, p.Info))
	}
	if how == stale {
		return EditOutcome{}, ed.stale(saysChanged)
	}
	if p.Info.Size > ed.editMax {
		return EditOutcome{}, ed.tooLarge(ed.editMax)
	}
	if err := ed.writable(p, ed.o.OverrideReadOnly); err != nil {
		return EditOutcome{}, err
	}
	ed.at("judged")
	read, err := ed.read(p, reading{keep: ed.editMax})
	switch {
	case err != nil:
		return EditOutcome{}, moved(err)
	case how == byHash && read.sum != sum:
		return EditOutcome{}, ed.stale(saysChanged)
	case read.over:
		return EditOutcome{}, ed.tooLarge(ed.editMax)
	case !read.stable:
		return EditOutcome{}, errMoved{err: errChanged, code: CodeStaleVersion}
	}
	mark, text, result, err := ed.apply(read.text)
	if err != nil {
		return EditOutcome{}, err
	}
	want := expected{p: p, info: p.Info, sum: read.sum, hashed: true, strict: true}
	r, err := ed.replace(dir, a, want, nil, mark, result)
	if err != nil {
		return EditOutcome{}, err
	}
	return EditOutcome{
		Version: r.version, Before: toLF(text), After: toLF(result),
		LinksBroken: r.links, MetadataLost: r.lost,
	}, nil
}

// apply makes the new text of a file. mark is its byte-order mark or empty.
func (ed *editing) apply(raw string) (mark, text, result string, err error) {
	if i := strings.IndexByte(raw, 0); i >= 0 {
		return "", "", "", ed.fail(CodeNotText, fmt.Sprintf("binary: a NUL byte at offset %d", i))
	}
	if err := ed.utf8(raw); err != nil {
		return "", "", "", err
	}
	if i := invalidUTF8(ed.e.NewString); i >= 0 {
		return "", "", "", ed.fail(CodeNotText, fmt.Sprintf("the new text is not UTF-8 at offset %d", i))
	}
	text, had := cutBOM(raw)
	if had {
		mark = bom
	}
	result, err = splice(text, ed.e.OldString, ed.e.NewString, ed.e.ReplaceAll, ed.editMax-int64(len(mark)))
	var many ambiguous
	switch {
	case errors.As(err, &many):
		err = ed.fail(CodeAmbiguousEdit, many.Error())
	case errors.Is(err, errResultSize):
		err = ed.tooLarge(ed.editMax)
	case err != nil:
		err = ed.fail(CodeEditNotFound, err.Error())
	}
	return mark, text, result, err
}
