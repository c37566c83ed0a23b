package policies

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wattle-dev/wattle/fence"
)

// builder merges documents. The first error stays.
type builder struct {
	c    Context
	mode fence.Mode // asked for by the session
	p    fence.Policy
	o    Origin // of the document that is being merged
	base []fence.Entry
	tmp  string // the source of compat_tmp, if it is on
	// known are all patterns that any document protected.
	known []string
	err   error
}

func (b *builder) merge(d *Document) {
	p := &b.p
	if d.Mode != "" {
		p.Mode = d.Mode
	}
	p.Writable = b.entries(p.Writable, d.Writable, "writable")
	p.Caches = b.entries(p.Caches, d.Caches, "caches")
	b.protect(d)
	b.hide(d)
	b.readable(d)
	for _, v := range d.Devices {
		p.Devices = slices.DeleteFunc(p.Devices, func(o fence.Device) bool { return o.Path == v.Path })
		p.Devices = append(p.Devices, fence.Device{Path: v.Path, Write: v.Write, Ioctl: v.Ioctl})
	}
	p.UnixSockets = b.entries(p.UnixSockets, d.UnixSockets, "unix_sockets")
	if d.Network != "" {
		p.Network = d.Network
	}
	if d.Protect != "" {
		p.Protect = d.Protect
		if d.Protect == fence.ProtectOff {
			b.override("protected paths are not kept from commands", 0)
		}
	}
	if d.Require != "" {
		p.Require = d.Require
		if d.Require == fence.RequireBestEffort {
			b.override("commands start although the kernel cannot hold the fence", 0)
		}
	}
	if d.ScratchInReadOnly != nil {
		p.ScratchInReadOnly = *d.ScratchInReadOnly
		if p.ScratchInReadOnly {
			b.override("scratch is writable in read-only", 0)
		}
	}
	if d.AttributeReads != nil {
		p.AttributeReads = *d.AttributeReads
	}
	if d.KeepOverwritten != nil {
		p.KeepOverwritten = *d.KeepOverwritten
	}
	if d.TrashCommands != nil {
		p.TrashCommands = *d.TrashCommands
	}
	if d.CompatTmp != nil {
		b.tmp = ""
		if *d.CompatTmp {
			b.tmp = b.o.At(0)
			b.override("the shared temporary directory is writable", 0)
		}
	}
}

// protect takes away first and adds then, so that one document can replace a
// protection by a narrower one.
func (b *builder) protect(d *Document) {
	for _, u := range d.Unprotected {
		n := len(b.p.Protected)
		b.p.Protected = slices.DeleteFunc(b.p.Protected, func(p fence.Protection) bool { return p.Match == u.Text })
		switch {
		case len(b.p.Protected) < n:
			b.override(u.Text+" is not protected", u.Line)
		case !b.protects(u.Text):
			hint := "; the names are those of the presets"
			if b.protects("**/" + u.Text) {
				hint = "; did you mean **/" + u.Text + "?"
			}
			b.fail("unprotected", u, fmt.Errorf("no policy protects %q%s", u.Text, hint))
		}
	}
	for _, p := range d.Protected {
		b.known = append(b.known, p.Match)
		b.p.Protected = append(b.p.Protected, fence.Protection{
			Match: p.Match, NotUnder: slices.Clone(p.NotUnder), Source: b.o.At(p.Line),
		})
	}
}

// protects tells whether a shipped preset, or a document so far, protects the
// pattern: a name that nobody has is a slip of the pen.
func (b *builder) protects(match string) bool {
	if slices.Contains(b.known, match) {
		return true
	}
	for _, p := range presets() {
		if slices.ContainsFunc(p.doc().Protected, func(q Protected) bool { return q.Match == match }) {
			return true
		}
	}
	return false
}

func (b *builder) hide(d *Document) {
	if d.Hide != nil && len(d.Hide) == 0 {
		if len(b.p.Hidden) > 0 {
			b.override("nothing is hidden but Wattle's own directories", 0)
		}
		b.p.Hidden, b.p.Visible = nil, nil
	}
	for _, h := range d.Hide {
		for _, path := range b.paths("hide", h, true) {
			if b.tooMuch(h, path) {
				continue
			}
			b.p.Hidden = append(b.p.Hidden, fence.Entry{Path: path, Source: b.o.At(h.Line)})
		}
	}
	b.p.Visible = b.entries(b.p.Visible, d.Visible, "visible")
}

// tooMuch tells whether a hidden path that a variable brought in would close
// what every command needs. Variables are set to /dev/null to say that there is
// no such file (pip's manual does), and PASSWORD_STORE_DIR=$HOME is a slip.
func (b *builder) tooMuch(h Item, path string) bool {
	return strings.HasPrefix(h.Text, "{env:") &&
		(fence.PathCovers("/dev", path) || fence.PathCovers(path, filepath.Clean(b.c.Home)))
}

func (b *builder) readable(d *Document) {
	b.base = b.entries(b.base, d.ReadableBase, "readable_base")
	if d.Readable == nil {
		return
	}
	if d.Readable.All {
		if b.p.ReadableRoots != nil {
			b.override("everything is readable that is not hidden", d.Readable.Line)
		}
		b.p.ReadableRoots = nil
		return
	}
	if b.p.ReadableRoots == nil {
		b.p.ReadableRoots = []fence.Entry{} // a list, although all its paths may stand for nothing
	}
	b.p.ReadableRoots = b.entries(b.p.ReadableRoots, d.Readable.Paths, "readable")
}

func (b *builder) finish() {
	p := &b.p
	if b.mode != "" {
		p.Mode = b.mode
	}
	if p.Mode == "" {
		p.Mode = fence.ReadOnly
	}
	if p.ReadableRoots != nil {
		p.ReadableRoots = append(p.ReadableRoots, b.base...)
	}
	if b.tmp != "" {
		p.Writable = append(p.Writable, fence.Entry{Path: "/tmp", Source: b.tmp})
		if dir := b.c.Env["TMPDIR"]; filepath.IsAbs(dir) && filepath.Clean(dir) != "/tmp" {
			p.Writable = append(p.Writable, fence.Entry{Path: dir, Source: b.tmp})
		}
	}
}

// entries appends what a list of the document stands for.
func (b *builder) entries(to []fence.Entry, items []Item, key string) []fence.Entry {
	for _, it := range items {
		for _, path := range b.paths(key, it, false) {
			to = append(to, fence.Entry{Path: path, Source: b.o.At(it.Line)})
		}
	}
	return to
}

func (b *builder) paths(key string, it Item, glob bool) []string {
	out, err := b.c.paths(it.Text, glob)
	if err != nil {
		b.fail(key, it, err)
	}
	return out
}

// override records that a default was changed, and by what.
func (b *builder) override(what string, line int) {
	b.p.Overrides = append(b.p.Overrides, what+" ("+b.o.At(line)+")")
}

func (b *builder) fail(key string, it Item, err error) {
	if b.err == nil {
		b.err = &Error{Code: CodeInvalid, Name: b.o.String(), Line: it.Line, Msg: key + ": " + err.Error(), Err: err}
	}
}
