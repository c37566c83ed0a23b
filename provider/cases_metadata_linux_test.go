package provider_test

import (
	"bytes"
	"os"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// carriers are all primitives that make another file of f: where it is then,
// and what they could not carry over.
var carriers = map[string]func(p *place) (at string, lost []string, err error){
	"writeText": func(p *place) (string, []string, error) {
		o, err := p.l.WriteText(p.t.Context(), p.f, p.target("f"), "y\n", provider.WriteOptions{OverrideReadOnly: true})
		return "f", o.MetadataLost, err
	},
	"editText": func(p *place) (string, []string, error) {
		o, err := p.l.EditText(p.t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "x", NewString: "y"}, provider.EditOptions{OverrideReadOnly: true})
		return "f", o.MetadataLost, err
	},
	"patchText": func(p *place) (string, []string, error) {
		o, err := p.l.PatchText(p.t.Context(), p.f, p.target("f"), chunks(p.t, "-x", "+y"), provider.PatchOptions{EditOptions: provider.EditOptions{OverrideReadOnly: true}})
		return "f", o.MetadataLost, err
	},
	"applyPatch": func(p *place) (string, []string, error) {
		r, err := p.apply(patchOf(updateOp("f", "x", "y")), provider.ApplyOptions{OverrideReadOnly: true})
		if err != nil {
			return "", nil, err
		}
		return "f", r.Operations[0].MetadataLost, nil
	},
	"applyPatch, move": func(p *place) (string, []string, error) {
		r, err := p.apply(patchOf(moveOp("f", "d/g", "x", "y")), provider.ApplyOptions{OverrideReadOnly: true})
		if err != nil {
			return "", nil, err
		}
		return "d/g", r.Operations[0].MetadataLost, nil
	},
	"moveFile": func(p *place) (string, []string, error) {
		o, err := p.l.MoveFile(p.t.Context(), p.f, p.target("f"), p.target("g"), provider.MoveOptions{OverrideReadOnly: true})
		return "g", o.Destination.MetadataLost, err
	},
	"moveFile, hunks": func(p *place) (string, []string, error) {
		o, err := p.l.MoveFile(p.t.Context(), p.f, p.target("f"), p.target("g"), provider.MoveOptions{Hunks: chunks(p.t, "-x", "+y"), OverrideReadOnly: true})
		return "g", o.Destination.MetadataLost, err
	},
	"moveFile, hunks, over": func(p *place) (string, []string, error) {
		p.put("g", "other")
		o, err := p.l.MoveFile(p.t.Context(), p.f, p.target("f"), p.target("g"), provider.MoveOptions{Hunks: chunks(p.t, "-x", "+y"), OverrideReadOnly: true})
		return "g", o.Destination.MetadataLost, err
	},
	"movePath": func(p *place) (string, []string, error) {
		o, err := p.l.MovePath(p.t.Context(), p.f, p.W+"/f", p.W+"/g", provider.MovePathOptions{})
		return "g", o.MetadataLost, err
	},
	"copyPath": func(p *place) (string, []string, error) {
		o, err := p.l.CopyPath(p.t.Context(), p.f, p.W+"/f", p.W+"/g", provider.CopyPathOptions{})
		return "g", o.MetadataLost, err
	},
	"copyPath, tree": func(p *place) (string, []string, error) {
		must(p.t, os.Mkdir(p.W+"/dir", 0o755))
		must(p.t, os.Rename(p.W+"/f", p.W+"/dir/f"))
		o, err := p.l.CopyPath(p.t.Context(), p.f, p.W+"/dir", p.W+"/g", provider.CopyPathOptions{Recursive: true})
		return "g/f", o.MetadataLost, err
	},
}

// dressed is everything about a file but its content and its times.
func dressed(t *testing.T, path string) []byte {
	t.Helper()
	fi, err := os.Stat(path)
	must(t, err)
	st := fi.Sys().(*syscall.Stat_t)
	var b bytes.Buffer
	for _, n := range []uint32{st.Mode, st.Uid, st.Gid} {
		b.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for _, n := range []string{"user.k", "user.empty", "system.posix_acl_access", "security.capability"} {
		a := attr(t, path, n)
		b.WriteString(n)
		b.WriteByte(byte(len(a)))
		b.Write(a)
		if a == nil {
			b.WriteString("none")
		}
	}
	return b.Bytes()
}

// E13: mode, owner, access list and attributes are what they were after every
// primitive that makes another file of one, or they are named as lost.
func TestCaseE13Metadata(t *testing.T) {
	list := acl([3]uint32{aclUserObj, 6, noID}, [3]uint32{aclUser, 4, 65534}, [3]uint32{aclGroupObj, 4, noID}, [3]uint32{aclMask, 5, noID}, [3]uint32{aclOther, 0, noID})
	modes := []uint32{0o4755, 0o2750, 0o1644, 0o7777, 0o600, 0o444}
	for name, carry := range carriers {
		for _, poor := range []bool{false, true} {
			for _, withList := range []bool{false, true} {
				for _, mode := range modes {
					p, _ := patchPlace(t, openDir(t), provider.Config{})
					p.l.Lack(poor, poor, poor)
					must(t, os.Mkdir(p.W+"/d", 0o755))
					f := p.put("f", "x\n")
					setAttr(t, f, "user.k", []byte("v"))
					setAttr(t, f, "user.empty", nil)
					if withList {
						setAttr(t, f, "system.posix_acl_access", list)
					}
					if os.Geteuid() == 0 {
						must(t, os.Chown(f, 1, 1))
						setAttr(t, f, "security.capability", []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
					}
					// chmod(1) and chmod(2) know the bits by their numbers.
					must(t, unix.Chmod(f, mode))
					want := dressed(t, f)
					at, lost, err := carry(p)
					if err != nil || lost != nil {
						t.Errorf("%s, mode %o: %v, lost %v", name, mode, err, lost)
						continue
					}
					if got := dressed(t, p.W+"/"+at); !bytes.Equal(got, want) {
						t.Errorf("%s, mode %o, list %v, few features %v:\n%q, was\n%q", name, mode, withList, poor, got, want)
					}
					p.nothingStaged(t)
				}
			}
		}
	}
}

// E13 without the right to chown: the change lands, what could be kept is kept,
// and the outcome names the owner.
func TestCaseE13WithoutChown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: needs root to make the file of somebody else")
	}
	list := acl([3]uint32{aclUserObj, 6, noID}, [3]uint32{aclUser, 6, 65534}, [3]uint32{aclGroupObj, 4, noID}, [3]uint32{aclMask, 6, noID}, [3]uint32{aclOther, 4, noID})
	for name, carry := range carriers {
		if name == "movePath" {
			continue // the file itself moves, with its owner
		}
		p, _ := patchPlace(t, openDir(t), provider.Config{})
		must(t, os.Chown(p.W, 65534, 65534))
		must(t, os.Mkdir(p.W+"/d", 0o777))
		must(t, os.Chmod(p.W+"/d", 0o777))
		f := p.put("f", "x\n")
		setAttr(t, f, "user.k", []byte("v"))
		setAttr(t, f, "system.posix_acl_access", list)
		must(t, os.Chown(f, 1, 1))
		var at string
		var lost []string
		var err error
		asOther(t, func() { at, lost, err = carry(p) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fi, serr := os.Stat(p.W + "/" + at)
		must(t, serr)
		switch uid := fi.Sys().(*syscall.Stat_t).Uid; {
		case name == "moveFile" && uid == 1 && lost == nil:
			// The file itself moves.
		case uid != 65534 || !slices.Contains(lost, "owner") || !slices.Contains(lost, "group"):
			t.Errorf("%s: owner %d, lost %v", name, uid, lost)
		}
		if a := attr(t, p.W+"/"+at, "user.k"); string(a) != "v" {
			t.Errorf("%s: user.k is %q", name, a)
		}
		if a := attr(t, p.W+"/"+at, "system.posix_acl_access"); !bytes.Equal(a, list) {
			t.Errorf("%s: access list %x, was %x", name, a, list)
		}
		p.nothingStaged(t)
	}
}
