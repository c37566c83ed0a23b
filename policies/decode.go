package policies

import (
	"fmt"
	"strings"
)

// decoder fills a Document from a tree, strictly.
type decoder struct {
	doc  Document
	keys map[string]place // of the keys that were there
}

// documentKeys are the keys of a document in TOML, for messages; the test of
// the schema compares them with the names in JSON.
var documentKeys = []string{
	"description", "mode", "writable", "protected", "unprotected", "hide", "visible", "readable",
	"readable_base", "devices", "network", "unix_sockets", "protect", "require",
	"scratch_in_read_only", "attribute_reads", "keep_overwritten", "trash_commands", "compat_tmp", "env", "caches",
}

func (d *decoder) document(root *node) *mistake {
	for _, f := range root.fields {
		d.keys[f.key] = f.at
		if m := d.key(f); m != nil {
			return m
		}
	}
	return nil
}

func (d *decoder) key(f *field) *mistake {
	doc := &d.doc
	switch f.key {
	case "description":
		return stringTo(&doc.Description, f.val)
	case "mode":
		return textTo(&doc.Mode, f.val)
	case "writable":
		return itemsTo(&doc.Writable, f.val)
	case "protected":
		return listTo(&doc.Protected, f.val, protected)
	case "unprotected":
		return itemsTo(&doc.Unprotected, f.val)
	case "hide":
		return itemsTo(&doc.Hide, f.val)
	case "visible":
		return itemsTo(&doc.Visible, f.val)
	case "readable":
		return d.readable(f.val)
	case "readable_base":
		return itemsTo(&doc.ReadableBase, f.val)
	case "devices":
		return listTo(&doc.Devices, f.val, device)
	case "network":
		return textTo(&doc.Network, f.val)
	case "unix_sockets":
		return itemsTo(&doc.UnixSockets, f.val)
	case "protect":
		return stringTo(&doc.Protect, f.val)
	case "require":
		return stringTo(&doc.Require, f.val)
	case "scratch_in_read_only":
		return boolTo(&doc.ScratchInReadOnly, f.val)
	case "attribute_reads":
		return boolTo(&doc.AttributeReads, f.val)
	case "keep_overwritten":
		return boolTo(&doc.KeepOverwritten, f.val)
	case "trash_commands":
		return boolTo(&doc.TrashCommands, f.val)
	case "compat_tmp":
		return boolTo(&doc.CompatTmp, f.val)
	case "caches":
		return itemsTo(&doc.Caches, f.val)
	case "env":
		return d.env(f.val)
	}
	return unknown(f, documentKeys)
}

func (d *decoder) env(n *node) *mistake {
	if n.kind != kindTable {
		return wrong(n, kindTable)
	}
	for _, f := range n.fields {
		d.keys[f.key] = f.at
		var m *mistake
		switch f.key {
		case "pass":
			m = itemsTo(&d.doc.Env.Pass, f.val)
		case "set":
			m = d.envSet(f.val)
		default:
			m = unknown(f, []string{"pass", "set"})
		}
		if m != nil {
			return m
		}
	}
	return nil
}

func (d *decoder) envSet(n *node) *mistake {
	if n.kind != kindTable {
		return wrong(n, kindTable)
	}
	d.doc.Env.Set = map[string]Item{}
	for _, f := range n.fields {
		if f.val.kind != kindString {
			return wrong(f.val, kindString)
		}
		d.doc.Env.Set[f.key] = Item{f.val.text, f.at.line}
	}
	return nil
}

func (d *decoder) readable(n *node) *mistake {
	r := &Readable{Line: n.at.line}
	if n.kind == kindString {
		if n.text != "all" {
			return &mistake{n.at, `readable is "all" or a list of paths`}
		}
		r.All = true
	} else if m := itemsTo(&r.Paths, n); m != nil {
		return m
	}
	d.doc.Readable = r
	return nil
}

func protected(p *Protected, n *node) *mistake {
	p.Line = n.at.line
	if n.kind == kindString {
		return stringTo(&p.Match, n)
	}
	if n.kind != kindTable {
		return &mistake{n.at, "a protection is a pattern, or a table of match and not_under"}
	}
	for _, f := range n.fields {
		var m *mistake
		switch f.key {
		case "match":
			m = stringTo(&p.Match, f.val)
		case "not_under":
			m = listTo(&p.NotUnder, f.val, stringTo[string])
		default:
			m = unknown(f, []string{"match", "not_under"})
		}
		if m != nil {
			return m
		}
	}
	if n.field("match") == nil {
		return &mistake{n.at, "a protection needs a match"}
	}
	return nil
}

func device(v *Device, n *node) *mistake {
	v.Line = n.at.line
	if n.kind == kindString {
		v.Write = true
		return stringTo(&v.Path, n)
	}
	if n.kind != kindTable {
		return &mistake{n.at, "a device is a path, or a table of path, write and ioctl"}
	}
	for _, f := range n.fields {
		var m *mistake
		switch f.key {
		case "path":
			m = stringTo(&v.Path, f.val)
		case "write":
			m = truthTo(&v.Write, f.val)
		case "ioctl":
			m = truthTo(&v.Ioctl, f.val)
		default:
			m = unknown(f, []string{"path", "write", "ioctl"})
		}
		if m != nil {
			return m
		}
	}
	if n.field("path") == nil {
		return &mistake{n.at, "a device needs a path"}
	}
	return nil
}

func stringTo[S ~string](to *S, n *node) *mistake {
	if n.kind != kindString {
		return wrong(n, kindString)
	}
	*to = S(n.text)
	return nil
}

// textTo lets the type itself judge the string.
func textTo[T interface {
	UnmarshalText([]byte) error
}](to T, n *node) *mistake {
	if n.kind != kindString {
		return wrong(n, kindString)
	}
	if err := to.UnmarshalText([]byte(n.text)); err != nil {
		return &mistake{n.at, err.Error()}
	}
	return nil
}

func truthTo(to *bool, n *node) *mistake {
	if n.kind != kindBool {
		return wrong(n, kindBool)
	}
	*to = n.truth
	return nil
}

func boolTo(to **bool, n *node) *mistake {
	*to = new(bool)
	return truthTo(*to, n)
}

// listTo makes a list that is not nil, also when it is empty.
func listTo[T any](to *[]T, n *node, item func(*T, *node) *mistake) *mistake {
	if n.kind != kindArray {
		return wrong(n, kindArray)
	}
	out := make([]T, len(n.items))
	for i, c := range n.items {
		if c.at.length == 0 { // a list in a list
			c.at = n.at
		}
		if m := item(&out[i], c); m != nil {
			return m
		}
	}
	*to = out
	return nil
}

func itemsTo(to *[]Item, n *node) *mistake {
	return listTo(to, n, func(it *Item, c *node) *mistake {
		it.Line = c.at.line
		return stringTo(&it.Text, c)
	})
}

func wrong(n *node, want nodeKind) *mistake {
	return &mistake{n.at, fmt.Sprintf("%s is expected here, not %s", want, n.kind)}
}

// unknown tells a key that does not exist from one in another spelling.
func unknown(f *field, known []string) *mistake {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
	}
	for _, k := range known {
		if plain(k) == plain(f.key) {
			return &mistake{f.at, fmt.Sprintf("unknown key %q: write %s", f.key, k)}
		}
	}
	return &mistake{f.at, fmt.Sprintf("unknown key %q: the keys are %s", f.key, strings.Join(known, ", "))}
}
