package fence_test

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/fence"
)

// File-system rights by number, as linux/landlock.h counts them. They are
// written out here so that a slip in the compiler's own names shows.
const (
	execute = 1 << iota
	writeFile
	readFile
	readDir
	removeDir
	removeFile
	makeChar
	makeDir
	makeReg
	makeSock
	makeFifo
	makeBlock
	makeSym
	refer
	truncate
	ioctlDev
	resolveUnix
)

const (
	onFiles  = execute | writeFile | readFile | truncate | ioctlDev | resolveUnix
	toChange = writeFile | removeDir | removeFile | makeDir | makeReg | makeSock | makeFifo | makeSym | refer | truncate
)

// abis is facts/landlock section 2.
var abis = []struct {
	abi, fs, net, scoped int // numbers of rights
	gaps                 []string
}{
	{1, 13, 0, 0, []string{"refer", "truncate", "device-ioctl", "signals", "abstract-sockets", "pathname-sockets", "udp", "tcp"}},
	{2, 14, 0, 0, []string{"truncate", "device-ioctl", "signals", "abstract-sockets", "pathname-sockets", "udp", "tcp"}},
	{3, 15, 0, 0, []string{"device-ioctl", "signals", "abstract-sockets", "pathname-sockets", "udp", "tcp"}},
	{4, 15, 2, 0, []string{"device-ioctl", "signals", "abstract-sockets", "pathname-sockets", "udp"}},
	{5, 16, 2, 0, []string{"signals", "abstract-sockets", "pathname-sockets", "udp"}},
	{6, 16, 2, 2, []string{"pathname-sockets", "udp"}},
	{7, 16, 2, 2, []string{"pathname-sockets", "udp"}},
	{8, 16, 2, 2, []string{"pathname-sockets", "udp"}},
	{9, 17, 2, 2, []string{"udp"}},
	{10, 17, 4, 2, nil},
	{11, 17, 4, 2, nil},
	{12, 17, 4, 2, nil}, // a newer kernel is used as the newest that is known
}

func whats(gaps []fence.Gap) []string {
	var out []string
	for _, g := range gaps {
		if g.Why == "" {
			out = append(out, "?")
		}
		out = append(out, g.What)
	}
	slices.Sort(out)
	return out
}

// plain is a policy without anything hidden.
func (w world) plain(mode fence.Mode) fence.Policy {
	p := w.policy(mode)
	p.Hidden, p.Visible, p.Own, p.Network = nil, nil, nil, fence.NetworkOff
	return p
}

// TestLandlockByABI: what is handled, what every rule may hold, and what is
// said to be missing, for every ABI and mode.
func TestLandlockByABI(t *testing.T) {
	w := newWorld(t)
	for _, a := range abis {
		for _, mode := range []fence.Mode{fence.ReadOnly, fence.WorkspaceWrite} {
			t.Run(fmt.Sprintf("%d %s", a.abi, mode), func(t *testing.T) {
				f := mustNew(t, w.plain(mode))
				r := f.CompileLandlock(fence.Kernel{LandlockABI: a.abi, Errata: 0xf})
				if r.ABI != min(a.abi, fence.MaxLandlockABI) || bits.OnesCount64(r.HandledFS) != a.fs || r.HandledFS != 1<<a.fs-1 ||
					bits.OnesCount64(r.HandledNet) != a.net || bits.OnesCount64(r.Scoped) != a.scoped {
					t.Errorf("abi %d fs %b net %b scoped %b", r.ABI, r.HandledFS, r.HandledNet, r.Scoped)
				}
				if r.SignalScoped() != (a.scoped == 2) {
					t.Errorf("signal scope: %v", r.SignalScoped())
				}
				want := slices.Clone(a.gaps)
				slices.Sort(want)
				if got := whats(r.Gaps); !slices.Equal(got, want) {
					t.Errorf("gaps %q, want %q", got, want)
				}
				for _, g := range r.Gaps {
					if !strings.HasPrefix(g.Since, "Landlock ABI ") {
						t.Errorf("since when: %+v", g)
					}
				}
				written := map[string]uint64{}
				for _, rule := range r.Rules {
					if rule.Rights == 0 || rule.Rights&^r.HandledFS != 0 {
						t.Errorf("%v holds what is not handled", rule)
					}
					if rule.Rights&(makeChar|makeBlock) != 0 {
						t.Errorf("%v lets devices be made", rule)
					}
					fi, err := os.Stat(rule.Path)
					if err != nil {
						t.Errorf("%v: %v", rule, err)
					} else if !fi.IsDir() && rule.Rights&^onFiles != 0 {
						t.Errorf("%v: the kernel refuses that on a file", rule)
					}
					if rule.Rights&toChange != 0 {
						written[rule.Path] |= rule.Rights
					}
				}
				for p, rights := range written {
					switch {
					case slices.Contains(f.WritableRoots(), p):
						if want := (toChange | resolveUnix | execute | readFile | readDir) & r.HandledFS; rights != want {
							t.Errorf("root %s: %b, want %b: all roots need equal rights", p, rights, want)
						}
					case filepath.Dir(p) == "/dev":
						if rights&toChange&^(writeFile|truncate) != 0 {
							t.Errorf("device %s: %b", p, rights)
						}
					default:
						t.Errorf("%s can be written", p)
					}
				}
				if mode == fence.WorkspaceWrite && written[w.ws] == 0 {
					t.Error("the workspace cannot be written")
				}
			})
		}
	}
}

// TestLandlockWithoutErratum: below its fix the signal scope is not used, and
// not relied on.
func TestLandlockWithoutErratum(t *testing.T) {
	f := mustNew(t, newWorld(t).plain(fence.WorkspaceWrite))
	for errata, scoped := range map[int]bool{0: false, 0xd: false, 2: true, 0xf: true} {
		k := fence.Kernel{LandlockABI: 7, Errata: errata}
		r := f.CompileLandlock(k)
		if r.SignalScoped() != scoped || k.Scopes() != scoped || (r.Scoped == 0) == scoped {
			t.Errorf("errata %x: %v", errata, r.SignalScoped())
		}
		if got := slices.Contains(whats(r.Gaps), "signals"); got == scoped {
			t.Errorf("errata %x: gaps %q", errata, whats(r.Gaps))
		}
	}
	if k := (fence.Kernel{LandlockABI: 5, Errata: 0xf}); k.Scopes() {
		t.Error("scopes on ABI 5")
	}
}

// TestLandlockSkips: a path that is missing is reported with its errno, and
// never made.
func TestLandlockSkips(t *testing.T) {
	w := newWorld(t)
	p := w.plain(fence.WorkspaceWrite)
	p.Devices = append(p.Devices, fence.Device{Path: w.out + "/no-device", Write: true})
	p.Writable = append(p.Writable, fence.Entry{Path: w.out + "/none", Source: "session"})
	r := mustNew(t, p).CompileLandlock(fence.Kernel{LandlockABI: 9, Errata: 0xf})
	for _, want := range []string{w.out + "/no-device", w.out + "/none", w.out + "/agent.sock"} {
		if !slices.Contains(r.Skipped, fence.Skipped{Path: want, Errno: "ENOENT"}) {
			t.Errorf("%s is not in %v", want, r.Skipped)
		}
		if _, err := os.Lstat(want); err == nil {
			t.Errorf("%s was made", want)
		}
	}
}

// reachable tells whether the rules give rights on a path, as the kernel does:
// by the rules on it and on everything above it.
func reachable(r *fence.Ruleset, path string, rights uint64) bool {
	for _, rule := range r.Rules {
		if fence.PathCovers(rule.Path, path) {
			rights &^= rule.Rights
		}
	}
	return rights == 0
}

// TestGrantAround: hidden paths get no rule and no rule above them, exceptions
// below do, and so does everything beside.
func TestGrantAround(t *testing.T) {
	w := newWorld(t)
	deep := w.home + "/.ssh/config.d"
	mustDir(t, deep+"/private/visible")
	for _, f := range []string{w.home + "/.profile", deep + "/a", deep + "/private/key", deep + "/private/visible/x", w.home + "/.aws/credentials"} {
		mustFile(t, f)
	}
	mustLink(t, w.home+"/.ssh/id", w.home+"/link")
	hidden := []string{w.home + "/.ssh", w.home + "/.ssh/id", w.home + "/.aws/credentials", w.home + "/.keepass2", w.own, w.own + "/token",
		deep + "/private", deep + "/private/key"}
	open := []string{w.home + "/.profile", w.home + "/.ssh/config", deep + "/a", deep + "/private/visible/x", w.out + "/secret", w.ws + "/f", w.evil + "/f",
		"/etc/passwd", "/usr/bin", "/proc/self/status"}
	policy := w.policy(fence.ReadOnly)
	policy.Visible = append(policy.Visible, fence.Entry{Path: deep, Source: "session"}, fence.Entry{Path: deep + "/private/visible", Source: "session"})
	policy.Hidden = append(policy.Hidden, fence.Entry{Path: deep + "/private", Source: "session"}, fence.Entry{Path: w.home + "/.absent", Source: "session"})
	lists := policy
	lists.ReadableRoots = []fence.Entry{{Path: "/", Source: "session"}}
	for name, p := range map[string]fence.Policy{"everything": policy, "a list": lists} {
		t.Run(name, func(t *testing.T) {
			f := mustNew(t, p)
			r := f.CompileLandlock(fence.Kernel{LandlockABI: 9, Errata: 0xf})
			for _, h := range hidden {
				if f.Check(h, fence.Read) == nil {
					t.Errorf("%s is not hidden", h)
				}
				if reachable(r, h, readFile) || reachable(r, h, execute) {
					t.Errorf("%s can be read", h)
				}
			}
			for _, o := range open {
				if d := f.Check(o, fence.Read); d != nil {
					t.Errorf("%v", d)
				}
				if !reachable(r, o, readFile|execute) {
					t.Errorf("%s cannot be read", o)
				}
			}
			if name == "everything" && (!reachable(r, w.home+"/.ssh", readDir) || !slices.Contains(whats(r.Gaps), "hidden-names")) {
				t.Errorf("names in a hidden directory: %q", whats(r.Gaps))
			}
			for _, rule := range r.Rules {
				if rule.Path == w.home+"/link" {
					t.Error("a rule on a link gives what it leads to")
				}
			}
		})
	}
}

// TestHiddenInARoot: what cannot be granted around is listed with its path.
func TestHiddenInARoot(t *testing.T) {
	w := newWorld(t)
	p := w.policy(fence.WorkspaceWrite)
	p.Hidden = append(p.Hidden, fence.Entry{Path: w.ws + "/secrets", Source: "session"}, fence.Entry{Path: "/**/*.pem", Source: "session"})
	r := mustNew(t, p).CompileLandlock(fence.Kernel{LandlockABI: 9, Errata: 0xf})
	for _, want := range []string{w.ws + "/secrets", "/**/*.pem"} {
		if !slices.ContainsFunc(r.Gaps, func(g fence.Gap) bool { return g.What == "hidden-reads" && strings.Contains(g.Why, want) }) {
			t.Errorf("%s is not in %+v", want, r.Gaps)
		}
	}
}

// TestFresh: a ruleset serves until a directory that it was made from changes,
// or a root is another one. What happens inside a root is no reason.
func TestFresh(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(w world) error
		fresh bool
	}{
		{"nothing", func(w world) error { return nil }, true},
		{"a file in the workspace", func(w world) error { return os.WriteFile(w.ws+"/new", nil, 0o644) }, true},
		{"a file in scratch", func(w world) error { return os.WriteFile(w.scratch+"/new", nil, 0o644) }, true},
		{"a file elsewhere", func(w world) error { return os.WriteFile(w.out+"/new", nil, 0o644) }, true},
		{"a file in a hidden directory", func(w world) error { return os.WriteFile(w.home+"/.ssh/new", nil, 0o644) }, true},
		{"a name beside a hidden one", func(w world) error { return os.WriteFile(w.home+"/new", nil, 0o644) }, false},
		{"a name beside a hidden one is gone", func(w world) error { return os.Remove(w.home + "/.keepass2") }, false},
		{"the workspace is another", func(w world) error {
			return errors.Join(os.Rename(w.ws, w.ws+".old"), os.Mkdir(w.ws, 0o755))
		}, false},
		{"the workspace is gone", func(w world) error { return os.Rename(w.ws, w.ws+".old") }, false},
		{"an extra root is another", func(w world) error {
			return errors.Join(os.Rename(w.extra, w.extra+".old"), os.Mkdir(w.extra, 0o755))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := mustNew(t, w.policy(fence.WorkspaceWrite)).CompileLandlock(fence.Kernel{LandlockABI: 7, Errata: 7})
			if !r.Fresh() {
				t.Fatal("stale at once")
			}
			tick(t, w.home)
			if err := c.do(w); err != nil {
				t.Fatal(err)
			}
			if got := r.Fresh(); got != c.fresh {
				t.Errorf("fresh: %v", got)
			}
		})
	}
}

// tick waits until a change of the directory gets another time stamp: some
// kernels count in ticks of milliseconds.
func tick(t *testing.T, dir string) {
	t.Helper()
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(t.TempDir(), "tick")
	for {
		if err := os.WriteFile(probe, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(probe)
		if err != nil {
			t.Fatal(err)
		}
		if fi.ModTime().After(before.ModTime()) {
			return
		}
	}
}

// TestNoKernel: without Landlock there is nothing to handle, and nothing says
// otherwise.
func TestNoKernel(t *testing.T) {
	w := newWorld(t)
	r := mustNew(t, w.plain(fence.ReadOnly)).CompileLandlock(fence.Kernel{Why: "none"})
	if r.ABI != 0 || r.HandledFS != 0 || r.HandledNet != 0 || r.Scoped != 0 || len(r.Rules) != 0 || r.SignalScoped() {
		t.Errorf("%+v", r)
	}
}

// TestRuleText shows rights by name.
func TestRuleText(t *testing.T) {
	p := fence.PathRule{Path: "/x", Rights: execute | readDir | refer | resolveUnix}
	if got := p.String(); got != "/x: execute,read_dir,refer,resolve_unix" {
		t.Error(got)
	}
}
