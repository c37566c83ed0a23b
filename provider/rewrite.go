package provider

import (
	"fmt"
	"strings"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// rewriting gives one text file, which must be there, a new text that is made
// of its old one: what editText and patchText have in common.
type rewriting struct {
	*call
	o EditOptions
	// change makes the new text, of at most limit bytes. Neither text has a
	// byte-order mark; the old one is UTF-8 without NUL. It runs with the lock
	// of the file held, and again when the file changed meanwhile. Its errors
	// are those of the call.
	change func(text string, limit int64) (string, error)
}

// run is the whole operation.
func (r *rewriting) run(t Target) (EditOutcome, error) {
	var out EditOutcome
	err := r.mutate(t, func(a aim) (err error) {
		out, err = r.try(a)
		return err
	})
	if err != nil {
		return EditOutcome{}, err
	}
	return out, nil
}

func (r *rewriting) try(a aim) (EditOutcome, error) {
	switch {
	case a.name == "":
		return EditOutcome{}, r.notRegular()
	case a.link, len(a.missing) > 0:
		return EditOutcome{}, r.stale(saysGone)
	}
	dir, err := r.openAim(a.dir)
	if err != nil {
		return EditOutcome{}, err
	}
	defer dir.Close()
	p, err := r.pinSource(dir, a.name)
	if err != nil {
		return EditOutcome{}, err
	}
	defer p.Close()
	return r.rewrite(dir, a, p)
}

func (r *rewriting) rewrite(dir *anchor.Dir, a aim, p *pin) (EditOutcome, error) {
	t, err := r.original(p, r.o.Expected, func(p *pin) error { return r.writable(p, r.o.OverrideReadOnly) })
	if err != nil {
		return EditOutcome{}, err
	}
	result, err := r.change(t.text, r.editMax-int64(len(t.mark)))
	if err != nil {
		return EditOutcome{}, err
	}
	done, err := r.replace(dir, a, t.want, nil, t.mark, result)
	if err != nil {
		return EditOutcome{}, err
	}
	return EditOutcome{
		Version: done.version, Before: toLF(t.text), After: toLF(result),
		LinksBroken: done.links, MetadataLost: done.lost,
	}, nil
}

// original is the text of a file from which a new one is made.
type original struct {
	mark, text string // mark is its byte-order mark or empty
	want       expected
}

// original holds a pinned regular file to a guard, asks whether it may be
// changed, and reads it.
func (c *call) original(p *pin, guard *VersionGuard, may func(*pin) error) (original, error) {
	how, sum := fresh, digest{}
	if guard != nil {
		how, sum = c.judge(guard.Version, stampOf(c.clock, p.Info))
	}
	if how == stale {
		return original{}, c.stale(saysChanged)
	}
	if p.Info.Size > c.editMax {
		return original{}, c.tooLarge(c.editMax)
	}
	if err := may(p); err != nil {
		return original{}, err
	}
	c.at("judged")
	read, err := c.read(p, reading{keep: c.editMax})
	switch {
	case err != nil:
		return original{}, moved(err)
	case how == byHash && read.sum != sum:
		return original{}, c.stale(saysChanged)
	case read.over:
		return original{}, c.tooLarge(c.editMax)
	case !read.stable:
		return original{}, errMoved{err: errChanged, code: CodeStaleVersion}
	}
	mark, text, err := c.wholeText(read.text)
	if err != nil {
		return original{}, err
	}
	return original{mark, text, expected{p: p, info: p.Info, sum: read.sum, hashed: true, strict: true}}, nil
}

// wholeText is the text of a file that is to be changed: all of it is UTF-8 and
// has no NUL. mark is its byte-order mark or empty.
func (c *call) wholeText(raw string) (mark, text string, err error) {
	if i := strings.IndexByte(raw, 0); i >= 0 {
		return "", "", c.fail(CodeNotText, fmt.Sprintf("binary: a NUL byte at offset %d", i))
	}
	if err := c.utf8(raw); err != nil {
		return "", "", err
	}
	text, had := cutBOM(raw)
	if had {
		mark = bom
	}
	return mark, text, nil
}
