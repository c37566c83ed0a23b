package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// MaxLandlockABI is the newest Landlock ABI that this compiler knows. A newer
// kernel is used as if it had this one: its further rights are not handled and
// not relied on.
const MaxLandlockABI = 11

// Kernel is what the running kernel can enforce, as it answered when asked.
type Kernel struct {
	// LandlockABI is 0 when Landlock is missing; Why then says how: not built
	// in or filtered away (ENOSYS), or built in and not enabled (EOPNOTSUPP).
	LandlockABI int
	// Errata has bit n-1 set when erratum n is fixed (facts/landlock section 2).
	Errata int
	Why    string
}

// erratumSignals is erratum 2: without its fix the signal scope is wrong
// between threads of one process, so that scopes cannot be relied on.
const erratumSignals = 1 << 1

// Scopes tells whether the signal and abstract-socket scopes can be relied on.
func (k Kernel) Scopes() bool { return k.LandlockABI >= 6 && k.Errata&erratumSignals != 0 }

// Rights of a rule. Names follow linux/landlock.h.
const (
	readFile = ll.AccessFSExecute | ll.AccessFSReadFile
	readDir  = readFile | ll.AccessFSReadDir
	// writeDir lacks MAKE_CHAR and MAKE_BLOCK: a device node made in a
	// workspace would lead around every path.
	writeDir = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym |
		ll.AccessFSRefer | ll.AccessFSResolveUnix
	// fileRights are those that the kernel accepts in a rule on a file.
	fileRights = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
	allV1 = 1<<13 - 1
)

// handledFS returns the file-system rights that exist on that ABI.
func handledFS(abi int) uint64 {
	h := uint64(0)
	if abi >= 1 {
		h |= allV1
	}
	if abi >= 2 {
		h |= ll.AccessFSRefer
	}
	if abi >= 3 {
		h |= ll.AccessFSTruncate
	}
	if abi >= 5 {
		h |= ll.AccessFSIoctlDev
	}
	if abi >= 9 {
		h |= ll.AccessFSResolveUnix
	}
	return h
}

func handledNet(abi int) uint64 {
	h := uint64(0)
	if abi >= 4 {
		h |= ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if abi >= 10 {
		h |= ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	}
	return h
}

// PathRule grants rights on a path and everything below it.
// Rights ⊆ HandledFS of its ruleset; on a file also Rights ⊆ fileRights.
type PathRule struct {
	Path   string
	Rights uint64
	// Must: the ruleset cannot be made without it. Others may vanish between
	// the look and the use, and are skipped then.
	Must bool
}

// Ruleset is a fence compiled for one kernel: what Landlock is to be told. It
// is data; [Ruleset.Open] on Linux makes the kernel object.
type Ruleset struct {
	ABI        int
	HandledFS  uint64
	HandledNet uint64
	Scoped     uint64
	Rules      []PathRule
	// Skipped and Gaps go into the enforcement report.
	Skipped []Skipped
	Gaps    []Gap
	stamps  []stamp
}

// Scoped tells whether the signal scope is in the ruleset: only then may a
// whole tree be ended with kill(-1).
func (r *Ruleset) SignalScoped() bool { return r.Scoped&ll.ScopeSignal != 0 }

// stamp is a directory that the rules depend on: that it is the same one, or
// also which names it holds.
type stamp struct {
	path  string
	info  os.FileInfo
	names bool
}

// Fresh tells whether the directories that the rules were compiled from, and
// the writable roots themselves, are the same and unchanged. A ruleset that is
// not fresh must be compiled again before the next start.
func (r *Ruleset) Fresh() bool {
	for _, s := range r.stamps {
		fi, err := os.Stat(s.path)
		if err != nil || !os.SameFile(fi, s.info) {
			return false
		}
		if s.names && !fi.ModTime().Equal(s.info.ModTime()) {
			return false
		}
	}
	return true
}

// CompileLandlock turns the fence into rules for a kernel with that ABI. It
// looks at the disk: rules name existing paths, and hidden paths are granted
// around. Rights that the ABI lacks are left out and listed in Gaps.
func (f *Fence) CompileLandlock(k Kernel) *Ruleset {
	abi := min(k.LandlockABI, MaxLandlockABI)
	r := &Ruleset{ABI: abi, HandledFS: handledFS(abi), Skipped: f.Skipped()}
	if k.Scopes() {
		r.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	if f.policy.Network == NetworkOff {
		r.HandledNet = handledNet(abi)
	}
	f.grantReadable(r)
	for _, w := range f.writable {
		r.grant(w.path, readDir|writeDir, true)
		r.watchRoot(w.path)
	}
	for _, d := range f.policy.Devices {
		rights := uint64(ll.AccessFSReadFile)
		if d.Write {
			rights |= ll.AccessFSWriteFile | ll.AccessFSTruncate
		}
		if d.Ioctl {
			rights |= ll.AccessFSIoctlDev
		}
		if fi, err := os.Stat(d.Path); err == nil && fi.IsDir() {
			rights |= ll.AccessFSReadDir
		}
		r.grant(d.Path, rights, false)
	}
	for _, s := range f.sockets {
		r.grant(s.path, ll.AccessFSResolveUnix, false)
	}
	r.Gaps = append(r.Gaps, f.landlockGaps(r, k)...)
	return r
}

// grant adds a rule with the rights that exist on this ABI and fit the kind of
// file. A path that is missing is skipped and reported.
func (r *Ruleset) grant(path string, rights uint64, must bool) {
	rights &= r.HandledFS
	if rights == 0 {
		return
	}
	fi, err := os.Stat(path)
	if err != nil {
		if !must {
			r.Skipped = append(r.Skipped, Skipped{Path: path, Errno: errnoName(err, "ENOENT")})
			return
		}
	} else if !fi.IsDir() {
		rights &= fileRights
	}
	r.Rules = append(r.Rules, PathRule{Path: path, Rights: rights, Must: must})
}

// watchRoot makes the ruleset stale when the root is replaced by another
// directory; its contents may change freely.
func (r *Ruleset) watchRoot(path string) {
	if fi, err := os.Stat(path); err == nil {
		r.stamps = append(r.stamps, stamp{path: path, info: fi})
	}
}

// grantReadable grants read and execute: on the readable roots, or on
// everything but the hidden.
func (f *Fence) grantReadable(r *Ruleset) {
	if f.readable != nil {
		for _, root := range f.readable {
			f.grantAround(r, root.path)
		}
		f.grantVisibleBelow(r, "/")
		return
	}
	if len(f.hidden) > 0 {
		// Names may be listed everywhere: READ_DIR opens no file.
		r.grant("/", ll.AccessFSReadDir, true)
	}
	f.grantAround(r, "/")
}

// grantAround grants read below dir except what is hidden: dir whole when
// nothing below it is hidden, else each of its entries, going down only where
// something is hidden. Links need no rule: what they lead to has its own.
func (f *Fence) grantAround(r *Ruleset, dir string) {
	switch f.hiddenBelow(dir) {
	case belowSelf:
		f.grantVisibleBelow(r, dir)
		return
	case belowNothing:
		r.grant(dir, readDir, false)
		return
	}
	fi, err := os.Lstat(dir)
	if err != nil || !fi.IsDir() {
		return
	}
	r.stamps = append(r.stamps, stamp{path: dir, info: fi, names: true})
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.Skipped = append(r.Skipped, Skipped{Path: dir, Errno: errnoName(err, "EIO")})
		return
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			continue
		}
		f.grantAround(r, filepath.Join(dir, e.Name()))
	}
}

// grantVisibleBelow grants the exceptions below dir, each around what is hidden
// in it again.
func (f *Fence) grantVisibleBelow(r *Ruleset, dir string) {
	for _, v := range f.visible {
		if v.path != dir && covers(dir, v.path) && !f.ours(v.path) {
			if _, err := os.Lstat(v.path); err == nil {
				f.grantAround(r, v.path)
			}
		}
	}
}

type below int

const (
	belowNothing below = iota
	belowSome
	belowSelf
)

// hiddenBelow tells whether dir itself is hidden, something below it may be,
// or nothing is. Patterns with ** cannot be granted around and count as
// nothing here; they are listed as a gap.
func (f *Fence) hiddenBelow(dir string) below {
	if sc := f.policy.Scratch; sc != "" && covers(sc, dir) {
		return belowNothing // a session's own scratch is never hidden from it
	}
	a := ask(dir)
	if f.decide(&a).kind == kindHidden {
		return belowSelf
	}
	for i := range f.hidden {
		h := &f.hidden[i]
		if h.pat != nil {
			if h.pat.begins(a.fold) {
				return belowSome
			}
			continue
		}
		if len(h.comps) > len(a.fold) && componentsCover(a.fold, h.comps) {
			return belowSome
		}
	}
	return belowNothing
}

func (p *pattern) anyDepth() bool {
	for _, s := range p.segs {
		if s == "**" {
			return true
		}
	}
	return false
}

// landlockGaps lists what Landlock does not hold on this kernel, whatever else
// may hold it.
func (f *Fence) landlockGaps(r *Ruleset, k Kernel) []Gap {
	var g []Gap
	add := func(what, why string, since int) {
		s := ""
		if since > 0 {
			s = fmt.Sprintf("Landlock ABI %d", since)
		}
		g = append(g, Gap{What: what, Why: why, Since: s})
	}
	if r.ABI < 2 {
		add("refer", "files cannot be moved or linked between directories", 2)
	}
	if r.ABI < 3 {
		add("truncate", "Landlock does not see truncation on this kernel", 3)
	}
	if r.ABI < 5 {
		add("device-ioctl", "device controls cannot be refused on this kernel", 5)
	}
	if r.Scoped == 0 {
		why := "this kernel has no scopes"
		if r.ABI >= 6 {
			why = "this kernel's signal scope is not fixed (erratum 2)"
		}
		add("signals", why, 6)
		add("abstract-sockets", why, 6)
	}
	if r.ABI < 9 {
		add("pathname-sockets", "Landlock does not see connections to sockets by path on this kernel", 9)
	}
	if f.policy.Network == NetworkOff && r.ABI < 10 {
		add("udp", "Landlock does not see UDP on this kernel", 10)
	}
	if f.policy.Network == NetworkOff && r.ABI < 4 {
		add("tcp", "Landlock does not see TCP on this kernel", 4)
	}
	for i := range f.hidden {
		h := &f.hidden[i]
		if h.pat != nil && h.pat.anyDepth() {
			add("hidden-reads", "commands can read "+h.path+": a pattern of any depth cannot be granted around", 0)
			continue
		}
		for _, w := range f.writable {
			if covers(w.path, h.path) {
				add("hidden-reads", "commands can read "+h.path+": it lies below a writable root", 0)
				break
			}
		}
	}
	if f.readable == nil && len(f.hidden) > 0 {
		add("hidden-names", "names inside hidden directories can be listed, their contents stay closed; a name made beside a hidden one cannot be read until the next command", 0)
	}
	return g
}

// describeRights names rights, for messages and tests.
func describeRights(rights uint64) string {
	names := []string{"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file", "make_char", "make_dir",
		"make_reg", "make_sock", "make_fifo", "make_block", "make_sym", "refer", "truncate", "ioctl_dev", "resolve_unix"}
	var out []string
	for i, n := range names {
		if rights&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return strings.Join(out, ",")
}

// String shows one rule.
func (p PathRule) String() string { return p.Path + ": " + describeRights(p.Rights) }
