package policies

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/wattle-dev/wattle/fence"
)

// Bounds of one document. They are far above what a person writes, and keep
// what a client sends from costing the daemon memory or every check its time.
const (
	maxBytes   = 1 << 20
	maxEntries = 4096
)

// Document is one policy as it was written. The zero Document says nothing.
//
// The names are those of JSON; in TOML the same names are written in
// snake_case (`unix_sockets`). Where a field is nil or zero, the document does
// not speak about it, and what came before stays.
type Document struct {
	// Origin is where the document comes from; zero means the session.
	Origin Origin `json:"-"`
	// Description is one line for people.
	Description string `json:"description,omitzero"`

	// Mode is used when the session asks for none.
	Mode fence.Mode `json:"mode,omitzero"`
	// Writable are further writable roots; protections apply in them.
	Writable []Item `json:"writable,omitzero"`
	// Protected are patterns inside writable roots that stay readable and
	// cannot be written.
	Protected []Protected `json:"protected,omitzero"`
	// Unprotected takes protections of earlier documents away, by the exact
	// text of their pattern.
	Unprotected []Item `json:"unprotected,omitzero"`
	// Hide are paths that can neither be read nor written; a component may be
	// a glob. A list that is there and empty takes away all that earlier
	// documents hide, and their exceptions; Wattle's own directories stay.
	Hide []Item `json:"hide,omitzero"`
	// Visible are exceptions below hidden paths: they can be read.
	Visible []Item `json:"visible,omitzero"`
	// Readable limits what can be read to a list, or opens it again.
	Readable *Readable `json:"readable,omitzero"`
	// ReadableBase is readable too whenever some document names a list: what
	// programs cannot start without. Without a list it means nothing.
	ReadableBase []Item `json:"readableBase,omitzero"`
	// Devices are device nodes that can be opened.
	Devices []Device      `json:"devices,omitzero"`
	Network fence.Network `json:"network,omitzero"`
	// UnixSockets may be connected to although they lie outside.
	UnixSockets []Item        `json:"unixSockets,omitzero"`
	Protect     fence.Protect `json:"protect,omitzero"`
	Require     fence.Require `json:"require,omitzero"`
	// ScratchInReadOnly opens the session's scratch in read-only too.
	ScratchInReadOnly *bool `json:"scratchInReadOnly,omitzero"`
	// AttributeReads makes refused reads of commands attributable, at a cost.
	AttributeReads *bool `json:"attributeReads,omitzero"`
	// KeepOverwritten puts what is overwritten by a write, a move or a copy into
	// the trash.
	KeepOverwritten *bool `json:"keepOverwritten,omitzero"`
	// TrashCommands links what fenced commands remove, or replace by a rename,
	// into the trash first. Off by default: every removal costs more, and no
	// disk space becomes free before the trash is emptied.
	TrashCommands *bool `json:"trashCommands,omitzero"`
	// CompatTmp makes /tmp and the user's TMPDIR writable roots, as the DSH
	// contract has it. They are shared with everybody.
	CompatTmp *bool `json:"compatTmp,omitzero"`
	Env       Env   `json:"env,omitzero"`
	// Caches are private caches: writable in workspace-write, no protections.
	Caches []Item `json:"caches,omitzero"`
}

// Env is how commands' environments are built.
type Env struct {
	// Pass are names that come from the user's environment, `*` allowed at the
	// end. Names that look like secrets never pass, whatever stands here.
	Pass []Item `json:"pass,omitzero"`
	// Set are names and values; a value may hold placeholders. A value whose
	// placeholder stands for nothing is left out.
	Set map[string]Item `json:"set,omitzero"`
}

// Item is one string of a document, with its line in a TOML file (0 in JSON).
type Item struct {
	Text string
	Line int
}

// Items makes a list of texts, for documents made in code.
func Items(texts ...string) []Item {
	out := make([]Item, len(texts))
	for i, t := range texts {
		out[i] = Item{Text: t}
	}
	return out
}

// MarshalText gives the text alone.
func (i Item) MarshalText() ([]byte, error) { return []byte(i.Text), nil }

// UnmarshalText takes any text; [Document] checks it afterwards.
func (i *Item) UnmarshalText(b []byte) error {
	*i = Item{Text: string(b)}
	return nil
}

// Protected is a pattern as fence.Protection has it. A string stands for a
// pattern without exceptions.
type Protected struct {
	Match    string   `json:"match"`
	NotUnder []string `json:"notUnder,omitzero"`
	Line     int      `json:"-"`
}

// Device is a device node. A string stands for one that can be read and
// written, without ioctls.
type Device struct {
	Path string `json:"path"`
	// Write opens it for writing too. Ioctl lets terminals be controlled.
	Write bool `json:"write,omitzero"`
	Ioctl bool `json:"ioctl,omitzero"`
	Line  int  `json:"-"`
}

// Readable is "all", or a list of at least one path.
type Readable struct {
	All   bool
	Paths []Item
	Line  int
}

// Origin is where a document comes from.
type Origin struct {
	kind originKind
	name string
}

// originKind is also the order of merging.
type originKind int

const (
	originSession originKind = iota // the zero Origin
	originPreset
	originFile
)

// rank orders documents for merging: presets, files, the session.
func (o Origin) rank() int {
	return map[originKind]int{originPreset: 0, originFile: 1, originSession: 2}[o.kind]
}

// At is the source string of an entry in that line.
func (o Origin) At(line int) string {
	switch o.kind {
	case originPreset:
		return "preset:" + o.name
	case originFile:
		if line > 0 {
			return "file:" + o.name + ":" + strconv.Itoa(line)
		}
		return "file:" + o.name
	}
	return "session"
}

// String is the name of the document, for messages.
func (o Origin) String() string {
	if o.kind == originSession {
		return "session"
	}
	return o.name
}

// flaw is something wrong with a document that its syntax does not show.
type flaw struct {
	key  string // as in TOML
	line int
	msg  string
}

// check finds what no type can say. It returns the first flaw or nil.
func (d *Document) check() *flaw {
	if len(d.Description) > 200 || strings.ContainsFunc(d.Description, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return &flaw{"description", 0, "a description is one printable line of at most 200 bytes"}
	}
	n := len(d.Protected) + len(d.Devices) + len(d.Env.Set)
	for _, l := range d.lists() {
		n += len(l.items)
		for _, it := range l.items {
			if msg := l.bad(it.Text); msg != "" {
				return &flaw{l.key, it.Line, msg}
			}
		}
	}
	if d.Readable != nil {
		n += len(d.Readable.Paths)
		if !d.Readable.All && len(d.Readable.Paths) == 0 {
			return &flaw{"readable", d.Readable.Line, `an empty list would leave nothing to read: name paths, or "all"`}
		}
	}
	if n > maxEntries {
		return &flaw{"", 0, fmt.Sprintf("%d entries are too many, %d at most", n, maxEntries)}
	}
	for _, p := range d.Protected {
		if msg := badPattern(p); msg != "" {
			return &flaw{"protected", p.Line, msg}
		}
	}
	for _, v := range d.Devices {
		if v.Path != path.Clean(v.Path) || path.Dir(v.Path) == "/" || !fence.PathCovers("/dev", v.Path) || strings.IndexByte(v.Path, 0) >= 0 {
			return &flaw{"devices", v.Line, fmt.Sprintf("%q is no path below /dev", v.Path)}
		}
	}
	switch d.Protect {
	case "", fence.ProtectStrict, fence.ProtectChecked, fence.ProtectOff:
	default:
		return &flaw{"protect", 0, fmt.Sprintf("%q is none of strict, checked, off", d.Protect)}
	}
	switch d.Require {
	case "", fence.RequireEnforced, fence.RequireBestEffort:
	default:
		return &flaw{"require", 0, fmt.Sprintf("%q is none of enforced, best-effort", d.Require)}
	}
	return d.Env.check()
}

// list is a list of paths, its key in TOML, and what an item must be like.
type list struct {
	key   string
	items []Item
	bad   func(string) string
}

func (d *Document) lists() []list {
	l := []list{
		{"writable", d.Writable, badPath},
		{"unprotected", d.Unprotected, badText},
		{"hide", d.Hide, badHide},
		{"visible", d.Visible, badPath},
		{"readable_base", d.ReadableBase, badPath},
		{"unix_sockets", d.UnixSockets, badPath},
		{"caches", d.Caches, badPath},
	}
	if d.Readable != nil {
		l = append(l, list{"readable", d.Readable.Paths, badPath})
	}
	return l
}

func (e *Env) check() *flaw {
	for _, p := range e.Pass {
		if msg := badEnvName(strings.TrimSuffix(p.Text, "*"), p.Text == "*"); msg != "" {
			return &flaw{"pass", p.Line, fmt.Sprintf("%q %s", p.Text, msg)}
		}
	}
	names := make([]string, 0, len(e.Set))
	for name := range e.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if msg := badEnvName(name, false); msg != "" {
			return &flaw{"set", e.Set[name].Line, fmt.Sprintf("%q %s", name, msg)}
		}
		if msg := badValue(e.Set[name].Text); msg != "" {
			return &flaw{"set", e.Set[name].Line, name + ": " + msg}
		}
	}
	return nil
}

// badEnvName: names are those of the shell. WATTLE_* describes the fence to
// the program inside; a policy that set one could lie to it.
func badEnvName(name string, emptyOK bool) string {
	if name == "" && !emptyOK {
		return "is no name of a variable"
	}
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return "is no name of a variable"
		}
	}
	if len(name) >= 6 && strings.EqualFold(name[:6], "WATTLE") {
		return "is reserved: WATTLE_* describes the fence to the programs in it"
	}
	return ""
}

// badText: what no path can be.
func badText(s string) string {
	switch {
	case s == "":
		return "an empty path names nothing"
	case strings.IndexByte(s, 0) >= 0:
		return "a path holds no NUL byte"
	case len(s) > 4095:
		return "a path holds at most 4095 bytes"
	}
	return ""
}

// badPattern mirrors what fence.New accepts, so that the line can be named.
func badPattern(p Protected) string {
	if msg := badText(p.Match); msg != "" {
		return msg
	}
	if p.Match[0] == '/' || p.Match[0] == '~' {
		return "a pattern is relative to the writable roots: begin it with a name or **"
	}
	for _, s := range strings.Split(p.Match, "/") {
		if s == "" || s == "." || s == ".." {
			return "a pattern is made of names, globs and **, without empty parts, . or .."
		}
		if _, err := path.Match(s, "x"); err != nil {
			return fmt.Sprintf("%q is a malformed glob", s)
		}
	}
	if path.Base(p.Match) == "**" {
		return "a pattern ends in a name: it covers all that lies below without **"
	}
	for _, n := range p.NotUnder {
		if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
			return fmt.Sprintf("not_under lists names of directories, and %q is none", n)
		}
	}
	return ""
}
