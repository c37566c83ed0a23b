package policies

import (
	"errors"
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// place is where something stands in a document, in bytes.
type place struct{ offset, length, line int }

// node is a value of a TOML document with its place. Exactly one of the
// groups is used, as kind says.
type node struct {
	kind  nodeKind
	at    place
	text  string // of a string
	truth bool   // of a bool
	items []*node
	// fields of a table, in the order of the document, and by key.
	fields []*field
	byKey  map[string]*field
}

type nodeKind string

const (
	kindString nodeKind = "a string"
	kindBool   nodeKind = "true or false"
	kindArray  nodeKind = "a list"
	kindTable  nodeKind = "a table"
	kindOther  nodeKind = "a number or date"
)

type field struct {
	key string
	at  place // of the key
	val *node
}

func (n *node) field(key string) *field { return n.byKey[key] }

func (n *node) add(f *field) *field {
	if n.byKey == nil {
		n.byKey = map[string]*field{}
	}
	n.byKey[f.key] = f
	n.fields = append(n.fields, f)
	return f
}

// treeReader builds the tree of a document that toml.Unmarshal has accepted:
// no key is defined twice, no table is redefined.
type treeReader struct {
	p     unstable.Parser
	ends  []int // offsets of line ends
	table *node // the one that key-values go to
}

func readTree(data []byte) (*node, error) {
	r := treeReader{}
	for i, c := range data {
		if c == '\n' {
			r.ends = append(r.ends, i)
		}
	}
	root := &node{kind: kindTable}
	r.table = root
	r.p.Reset(data)
	for r.p.NextExpression() {
		e := r.p.Expression()
		switch e.Kind {
		case unstable.KeyValue:
			if err := r.keyValue(r.table, e); err != nil {
				return nil, err
			}
		case unstable.Table, unstable.ArrayTable:
			t, err := r.header(root, e)
			if err != nil {
				return nil, err
			}
			r.table = t
		}
	}
	return root, r.p.Error()
}

func (r *treeReader) place(n *unstable.Node) place {
	off := int(n.Raw.Offset)
	return place{off, int(n.Raw.Length), 1 + sort.SearchInts(r.ends, off)}
}

// header makes the table of `[a.b]`, or a new item of `[[a.b]]`.
func (r *treeReader) header(root *node, e *unstable.Node) (*node, error) {
	t := root
	it := e.Key()
	for it.Next() {
		k := it.Node()
		last := it.IsLast()
		f := t.field(string(k.Data))
		if f == nil {
			f = t.add(&field{string(k.Data), r.place(k), &node{kind: kindTable, at: r.place(k)}})
			if last && e.Kind == unstable.ArrayTable {
				f.val.kind = kindArray
			}
		}
		if last && e.Kind == unstable.ArrayTable {
			if f.val.kind != kindArray {
				return nil, errUnexpected
			}
			f.val.items = append(f.val.items, &node{kind: kindTable, at: r.place(k)})
		}
		switch f.val.kind {
		case kindTable:
			t = f.val
		case kindArray:
			if len(f.val.items) == 0 {
				return nil, errUnexpected
			}
			t = f.val.items[len(f.val.items)-1]
		default:
			return nil, errUnexpected
		}
	}
	return t, nil
}

// keyValue puts `a.b = v` into a table.
func (r *treeReader) keyValue(t *node, e *unstable.Node) error {
	it := e.Key()
	for it.Next() {
		k := it.Node()
		f := t.field(string(k.Data))
		if it.IsLast() {
			v, err := r.value(e.Value())
			if err != nil {
				return err
			}
			if f != nil {
				return errUnexpected
			}
			if v.at.length == 0 { // lists have no place of their own
				v.at = r.place(k)
			}
			t.add(&field{string(k.Data), r.place(k), v})
			return nil
		}
		if f == nil {
			f = t.add(&field{string(k.Data), r.place(k), &node{kind: kindTable, at: r.place(k)}})
		}
		if f.val.kind != kindTable {
			return errUnexpected
		}
		t = f.val
	}
	return nil
}

func (r *treeReader) value(v *unstable.Node) (*node, error) {
	n := &node{kind: kindOther, at: r.place(v)}
	switch v.Kind {
	case unstable.String:
		n.kind, n.text = kindString, string(v.Data)
	case unstable.Bool:
		n.kind, n.truth = kindBool, string(v.Data) == "true"
	case unstable.Array:
		n.kind, n.at = kindArray, place{}
		for it := v.Children(); it.Next(); {
			c, err := r.value(it.Node())
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, c)
		}
	case unstable.InlineTable:
		n.kind = kindTable
		for it := v.Children(); it.Next(); {
			if err := r.keyValue(n, it.Node()); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// maxKeys bounds what toml.Unmarshal is given: its search for duplicates takes
// time by the square of the number of keys (measured: 100,000 keys, 20 s).
const maxKeys = 3 * maxEntries

// tooManyKeys counts the parts of all keys, up to the first syntax error.
func tooManyKeys(data []byte) bool {
	var p unstable.Parser
	p.Reset(data)
	n := 0
	for n <= maxKeys && p.NextExpression() {
		n += 1 + countKeys(p.Expression().Child())
	}
	return n > maxKeys
}

func countKeys(c *unstable.Node) int {
	n := 0
	for ; c.Valid(); c = c.Next() {
		if c.Kind == unstable.Key {
			n++
		}
		n += countKeys(c.Child())
	}
	return n
}

// errUnexpected: the tree is not what toml.Unmarshal accepted. It cannot
// happen while both read the same grammar; a document is refused if it does.
var errUnexpected = errors.New("the document defines something twice")
