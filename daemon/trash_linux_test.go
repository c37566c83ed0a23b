package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/asuser"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/trash/record"
)

func (h *house) bin() string { return filepath.Join(h.home, ".local/share/Trash") }

// put makes a file, with its parents, that has everything which must survive.
func (h *house) put(path, text string, mode os.FileMode) string {
	h.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.ws, path)
	}
	old := time.Date(2011, 12, 13, 14, 15, 16, 171819, time.UTC)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600))
	if xerr := unix.Setxattr(path, "user.wattle", []byte("kept\x00value"), 0); xerr != nil && !errors.Is(xerr, unix.ENOTSUP) {
		err = errors.Join(err, xerr)
	}
	if err = errors.Join(err, os.Chmod(path, mode), os.Chtimes(path, old, old)); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// shot describes a path and all beneath it: type, mode, times, attribute,
// content.
func shot(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(path, p)
		fmt.Fprintf(&b, "%q %v %d", rel, fi.Mode(), fi.ModTime().UnixNano())
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			fmt.Fprintf(&b, " -> %q %v", to, err)
		case fi.Mode().IsRegular():
			c, err := os.ReadFile(p)
			fmt.Fprintf(&b, " %x %v", sha256.Sum256(c), err)
		}
		val := make([]byte, 100)
		if n, err := unix.Lgetxattr(p, "user.wattle", val); err == nil {
			fmt.Fprintf(&b, " %q", val[:n])
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func ref(session, path string) api.FileRef { return api.FileRef{SessionID: session, Path: path} }

func (h *house) restored(c *client.Client, p api.TrashRestoreParams) string {
	h.t.Helper()
	r := do(h, c, api.TrashRestore, p)
	if len(r.Restored) != 1 || r.Group != nil {
		h.t.Fatalf("%+v", r)
	}
	return r.Restored[0].Path
}

// originals are the paths in a listing, relative to the workspace, sorted.
func (h *house) originals(c *client.Client, p api.TrashListParams) []string {
	h.t.Helper()
	out := []string{}
	for _, e := range do(h, c, api.TrashList, p).Entries {
		// Other mounts of the machine may have a trash too.
		if strings.HasPrefix(e.TrashDir, h.dir+"/") {
			out = append(out, strings.TrimPrefix(e.OriginalPath, h.ws+"/"))
		}
	}
	slices.Sort(out)
	return out
}

// next waits for an event of a type.
func next[D any](h *house, sub *client.Subscription, t api.EventType[D]) (D, api.Event) {
	h.t.Helper()
	for {
		e, err := sub.Next(h.ctx())
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Type != t.Name {
			continue
		}
		d, err := t.Decode(e)
		if err != nil {
			h.t.Fatal(err)
		}
		return d, e
	}
}

// C11: the default of every delete is the trash, also for directories, links,
// and in a patch; what comes back is what went, byte, mode, times and attributes.
// C12: the link goes, or the file behind it, as the call says.
func TestC11DeletesComeBack(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	s := h.open(c, fence.WorkspaceWrite)
	id := s.SessionID
	path := func(p string) func() *record.Entry {
		return func() *record.Entry {
			return do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, p)}).Trashed
		}
	}
	h.put("t", "x", 0o644)
	for _, l := range []struct{ to, at string }{{"t", "l"}, {"nope", "dangling"}} {
		if err := os.Symlink(l.to, filepath.Join(h.ws, l.at)); err != nil {
			t.Fatal(err)
		}
	}
	h.put("a/one", "1", 0o640)
	h.put("b/two", "2", 0o600)
	h.put("b/c/three", "3", 0o755)
	h.put("p/patched", "old\n", 0o644)
	h.put("r", "real", 0o604)
	if err := os.Symlink("r", filepath.Join(h.ws, "to-r")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, gone string
		delete     func() *record.Entry
		kind       string
	}{
		{"file", "a/one", path("a/one"), "file"},
		{"directory", "b", path("b"), "directory"},
		{"C12 link", "l", path("l"), "symlink"},
		{"C12 dangling link", "dangling", path("dangling"), "symlink"},
		{"C12 deleteFile through a link", "r", func() *record.Entry {
			return do(h, c, api.FSDeleteFile, api.FSDeleteFileParams{FileRef: ref(id, "to-r")}).Trashed
		}, "file"},
		{"patch", "p/patched", func() *record.Entry {
			r := do(h, c, api.FSApplyPatch, api.FSApplyPatchParams{SessionID: id, Patch: "*** Begin Patch\n*** Delete File: p/patched\n*** End Patch\n"})
			return r.Operations[0].Trashed
		}, "file"},
	} {
		at := filepath.Join(h.ws, tt.gone)
		before := shot(t, at)
		e := tt.delete()
		if e == nil || e.OriginalPath != at || e.TrashDir != h.bin() || e.Type != tt.kind || e.State != record.OK {
			t.Fatalf("%s: %+v", tt.name, e)
		}
		absent(t, at)
		if d, ev := next(h, sub, api.EventTrashPut); d.ID != e.ID || ev.SessionID != id {
			t.Errorf("%s: told %+v", tt.name, d)
		}
		if got := h.originals(c, api.TrashListParams{SessionID: id}); !slices.Equal(got, []string{tt.gone}) {
			t.Errorf("%s: listed %q", tt.name, got)
		}
		// With the session, and as the user.
		p := api.TrashRestoreParams{SessionID: id, ID: e.ID}
		if tt.name == "directory" {
			p.SessionID = ""
		}
		if back := h.restored(c, p); back != at {
			t.Errorf("%s: came back as %s", tt.name, back)
		}
		if d, ev := next(h, sub, api.EventTrashRestored); d.Path != at || d.Entry == nil || d.Entry.ID != e.ID || ev.SessionID != p.SessionID {
			t.Errorf("%s: told %+v", tt.name, d)
		}
		if after := shot(t, at); after != before {
			t.Errorf("%s: came back as\n%s\nwas\n%s", tt.name, after, before)
		}
		refused(h, c, api.TrashRestore, p, record.CodeNotFound)
	}
	holds(t, filepath.Join(h.ws, "t"), "x")

	// Permanent only when the call says so, and the word differs.
	if r := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, "b"), Permanent: true, Recursive: true}); r.Outcome != record.Deleted || r.Trashed != nil {
		t.Errorf("%+v", r)
	}
	if r := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, "b")}); r.Outcome != record.AlreadyAbsent {
		t.Errorf("%+v", r)
	}
	if got := h.originals(c, api.TrashListParams{}); len(got) != 0 {
		t.Errorf("left in the trash: %q", got)
	}
}

// What is listed, where things come back to, and what is removed for good.
func TestTrashCalls(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	id := h.open(c, fence.WorkspaceWrite).SessionID
	full := h.open(c, fence.FullAccess).SessionID
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"trash.emptied"}})
	if err != nil {
		t.Fatal(err)
	}
	away := h.put(filepath.Join(h.home, "docs/away"), "a", 0o644)
	for _, p := range []string{"f", "g", "d/h"} {
		h.put(p, p, 0o644)
	}
	ids := map[string]string{}
	for _, p := range []string{"f", "g", "d", away} {
		session := id
		if filepath.IsAbs(p) {
			session = full
		}
		ids[p] = do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(session, p)}).Trashed.ID
	}
	if got := h.originals(c, api.TrashListParams{SessionID: id}); !slices.Equal(got, []string{"d", "f", "g"}) {
		t.Errorf("of the workspace: %q", got)
	}
	for _, p := range []api.TrashListParams{{}, {All: true}, {SessionID: id, All: true}} {
		if got := h.originals(c, p); !slices.Equal(got, []string{away, "d", "f", "g"}) {
			t.Errorf("all: %q", got)
		}
	}

	// Never over something, not even an empty directory or a dangling link.
	h.put("f", "new", 0o644)
	e := refused(h, c, api.TrashRestore, api.TrashRestoreParams{ID: ids["f"]}, "FS_ALREADY_EXISTS")
	if !strings.Contains(string(e.Data), `"outcome":"failed"`) {
		t.Errorf("%s", e.Data)
	}
	holds(t, filepath.Join(h.ws, "f"), "new")
	if err := os.Symlink("nope", filepath.Join(h.ws, "g")); err != nil {
		t.Fatal(err)
	}
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: id, ID: ids["g"]}, "FS_ALREADY_EXISTS")
	// Somewhere else, with parents when asked for.
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: id, ID: ids["f"], Destination: "x/y/f"}, "FS_NOT_FOUND")
	absent(t, filepath.Join(h.ws, "x"))
	r := do(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: id, ID: ids["f"], Destination: "x/y/f", Parents: true})
	if want := []string{filepath.Join(h.ws, "x"), filepath.Join(h.ws, "x/y")}; !slices.Equal(r.Restored[0].Made, want) {
		t.Errorf("%+v", r)
	}
	holds(t, filepath.Join(h.ws, "x/y/f"), "f")
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{ProcessID: "nobody"}, record.CodeNotFound)
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: "nobody", ID: ids["g"]}, api.CodeSessionNotFound)
	refused(h, h.dial(), api.TrashList, api.TrashListParams{SessionID: id}, "SESSION_NOT_HELD")

	// By age, by id, and what is not there.
	year := 365
	if r := do(h, c, api.TrashEmpty, api.TrashEmptyParams{OlderThanDays: &year}); slices.ContainsFunc(r.Entries, func(e record.Entry) bool { return strings.HasPrefix(e.TrashDir, h.dir) }) {
		t.Errorf("%+v", r)
	}
	x := do(h, c, api.TrashEmpty, api.TrashEmptyParams{IDs: []string{ids["d"], ids["f"]}})
	if len(x.Entries) != 1 || x.Entries[0].ID != ids["d"] || x.Files != 1 || len(x.Left) != 1 || x.Left[0].Error.Stable() != record.CodeNotFound {
		t.Errorf("%+v", x)
	}
	if d, _ := next(h, sub, api.EventTrashEmptied); d != (api.TrashEmptiedData{Entries: 1, Files: 1, Bytes: 3, Left: 1}) {
		t.Errorf("%+v", d)
	}
	if got := h.originals(c, api.TrashListParams{}); !slices.Equal(got, []string{away, "g"}) {
		t.Errorf("left: %q", got)
	}
	absent(t, filepath.Join(h.bin(), "files/d"))
	absent(t, filepath.Join(h.bin(), "info/d.trashinfo"))
}

// The fence of a session decides about what comes back through it: where to,
// where from, and what is in it.
func TestTrashRestoreIsFenced(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	secret := h.put(filepath.Join(h.home, ".ssh/id"), "secret", 0o600)
	in := filepath.Join(h.home, "code")
	h.put(in+"/d/.git/hooks/post-checkout", "evil", 0o755)
	id := h.open(c, fence.WorkspaceWrite).SessionID
	wide := h.open(c, fence.WorkspaceWrite, func(p *api.SessionOpenParams) { p.WritableRoots = []string{h.outside} }).SessionID
	full := h.open(c, fence.FullAccess).SessionID
	read := h.open(c, fence.ReadOnly).SessionID
	h.put("f", "f", 0o644)
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"fs.denied"}})
	if err != nil {
		t.Fatal(err)
	}
	bin := func(p string) string {
		return do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(full, p)}).Trashed.ID
	}
	file, ssh, dir := bin(filepath.Join(h.ws, "f")), bin(secret), bin(in+"/d")
	holder := h.open(c, fence.WorkspaceWrite, func(p *api.SessionOpenParams) { p.WritableRoots = []string{in} }).SessionID
	denied := func(p api.TrashRestoreParams, rule fence.Rule, notThere string) {
		t.Helper()
		e := refused(h, c, api.TrashRestore, p, fence.CodeSandboxDenied)
		if d := e.Denial(); d == nil || d.Rule != rule {
			t.Errorf("%+v: %+v", p, d)
		}
		if d, _ := next(h, sub, api.EventFSDenied); d.Rule != rule {
			t.Errorf("told %+v", d)
		}
		absent(t, notThere)
	}
	denied(api.TrashRestoreParams{SessionID: id, ID: file, Destination: h.outside + "/f"}, fence.RuleOutside, h.outside+"/f")
	denied(api.TrashRestoreParams{SessionID: id, ID: file, Destination: h.outside + "/new/f", Parents: true}, fence.RuleOutside, h.outside+"/new")
	denied(api.TrashRestoreParams{SessionID: id, ID: file, Destination: ".git/hooks/pre-commit", Parents: true}, fence.RuleProtected, filepath.Join(h.ws, ".git"))
	denied(api.TrashRestoreParams{SessionID: read, ID: file}, fence.RuleReadOnly, filepath.Join(h.ws, "f"))
	// The trash is no way to what is hidden, or outside.
	denied(api.TrashRestoreParams{SessionID: id, ID: ssh, Destination: "id"}, fence.RuleHidden, filepath.Join(h.ws, "id"))
	denied(api.TrashRestoreParams{SessionID: id, ID: dir, Destination: "d"}, fence.RuleOutside, filepath.Join(h.ws, "d"))
	// Nor to what programs outside the fence would run.
	denied(api.TrashRestoreParams{SessionID: holder, ID: dir, Destination: "d"}, fence.RuleProtected, filepath.Join(h.ws, "d"))
	denied(api.TrashRestoreParams{SessionID: holder, ID: dir}, fence.RuleProtected, in+"/d")
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: full, ID: file, Destination: h.bin() + "/files/z"}, record.CodeRejected)
	if len(h.originals(c, api.TrashListParams{})) != 3 {
		t.Error("something left the trash")
	}
	if got := h.restored(c, api.TrashRestoreParams{SessionID: wide, ID: file, Destination: h.outside + "/f"}); got != h.outside+"/f" {
		t.Error(got)
	}
	// Data without a record was anybody's.
	h.put(h.bin()+"/files/orphan", "o", 0o600)
	var orphan string
	for _, e := range do(h, c, api.TrashList, api.TrashListParams{}).Entries {
		if e.TrashDir == h.bin() && e.State == record.Orphan {
			orphan = e.ID
		}
	}
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: id, ID: orphan, Destination: "o"}, record.CodeRejected)
	absent(t, filepath.Join(h.ws, "o"))
	h.restored(c, api.TrashRestoreParams{ID: orphan, Destination: filepath.Join(h.ws, "o")})
	// The user is held by no fence.
	h.restored(c, api.TrashRestoreParams{ID: dir})
	holds(t, in+"/d/.git/hooks/post-checkout", "evil")
	h.restored(c, api.TrashRestoreParams{SessionID: full, ID: ssh})
	holds(t, secret, "secret")
}

// No fenced command and no file call reads, empties or changes the trash of the
// home directory, whether it was there when the session began or not.
func TestTrashOfTheHomeIsClosed(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	id := h.open(c, fence.WorkspaceWrite).SessionID
	h.put("f", "thrown away", 0o644)
	e := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, "f")}).Trashed
	at := filepath.Join(h.bin(), "files", e.Name)
	for _, late := range []bool{false, true} {
		if late {
			id = h.open(c, fence.WorkspaceWrite).SessionID
		}
		_, st := h.run(c, id, "cat '"+at+"'; rm -rf '"+h.bin()+"'; mv '"+h.bin()+"' x; echo y > '"+at+"'; : > '"+h.bin()+"/files/new'; ln '"+at+"' l")
		if strings.Contains(st.text, "thrown away") {
			t.Errorf("late %v: a command read it", late)
		}
		denied := func(err error) {
			t.Helper()
			if e := (*api.Error)(nil); !errors.As(err, &e) || e.Stable() != fence.CodeSandboxDenied || e.Denial().Rule != fence.RuleHidden {
				t.Errorf("late %v: %v", late, err)
			}
		}
		_, err := client.Do(h.ctx(), c, api.FSReadText, api.FSReadTextParams{FileRef: ref(id, at)})
		denied(err)
		_, err = client.Do(h.ctx(), c, api.FSWriteText, api.FSWriteTextParams{FileRef: ref(id, at), Content: "y"})
		denied(err)
		_, err = client.Do(h.ctx(), c, api.FSCopyPath, api.FSCopyPathParams{FileRef: ref(id, at), Destination: "copy"})
		denied(err)
		refused(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, at), Permanent: true}, record.CodeRejected)
		holds(t, at, "thrown away")
		absent(t, h.bin()+"/files/new")
		for _, p := range []string{"x", "l", "copy"} {
			absent(t, filepath.Join(h.ws, p))
		}
	}
	// Not by a root or a grant either.
	_, err := client.Do(h.ctx(), c, api.SessionOpen, api.SessionOpenParams{Workspace: filepath.Dir(at), Mode: fence.WorkspaceWrite})
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Stable() != fence.CodePolicyRootRefused {
		t.Errorf("%v", err)
	}
	refused(h, c, api.SessionOpen, api.SessionOpenParams{Workspace: h.ws, Mode: fence.WorkspaceWrite, WritableRoots: []string{h.bin()}}, fence.CodePolicyRootRefused)
	if _, err := client.Do(h.ctx(), c, api.SessionGrant, api.SessionGrantParams{SessionRef: api.SessionRef{SessionID: id}, Path: filepath.Dir(at), Access: fence.Write, Scope: api.ScopeSession}); err == nil {
		t.Error("the trash was granted")
	}
	// Full access is what it says.
	full := h.open(c, fence.FullAccess).SessionID
	if r := do(h, c, api.FSReadText, api.FSReadTextParams{FileRef: ref(full, at)}); r.Text != "thrown away" {
		t.Errorf("%+v", r)
	}
	refused(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(full, h.bin()), Permanent: true, Recursive: true}, record.CodeRejected)
	holds(t, at, "thrown away")
}

// startMounted starts the daemon in a mount namespace of its own, after a shell
// script, and gives the way to its files.
func (h *house) startMounted(script string) (root string) {
	h.t.Helper()
	if os.Geteuid() != 0 {
		h.t.Skip("SKIP: only root can mount")
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		h.t.Skip("SKIP-CAPABLE: no unshare (apt install util-linux)")
	}
	h.starter = []string{unshare, "-m", "--propagation", "private", "sh", "-ec", script + "\nexec \"$0\" \"$@\""}
	h.start()
	return "/proc/" + strconv.Itoa(h.cmd.Process.Pid) + "/root"
}

// Where the workspace is the top of its mount, its trash lies in the workspace
// and is closed there, before and after it is made; so is that of a mount in it.
func TestTrashInTheWorkspaceIsClosed(t *testing.T) {
	h := newHouse(t)
	own := ".Trash-" + strconv.Itoa(os.Geteuid())
	root := h.startMounted("mount -t tmpfs none '" + h.ws + "'; mkdir '" + h.ws + "/in'; mount -t tmpfs none '" + h.ws + "/in'")
	c := h.dial()
	id := h.open(c, fence.WorkspaceWrite).SessionID
	for _, dir := range []string{"", "in"} {
		h.put(root+filepath.Join(h.ws, dir, "f"), "thrown away", 0o644)
		bin := filepath.Join(h.ws, dir, own)
		// A command that was there first cannot put one of its own in its place.
		if _, st := h.run(c, id, "mkdir "+filepath.Join(dir, own)+" "+filepath.Join(dir, ".Trash")+"; ln -s /tmp "+filepath.Join(dir, own)); st.code == 0 {
			t.Errorf("%q: a command made the trash: %s", dir, st.text)
		}
		absent(t, root+bin)
		before := shot(t, root+filepath.Join(h.ws, dir, "f"))
		e := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, filepath.Join(dir, "f"))}).Trashed
		if e == nil || e.TrashDir != bin {
			t.Fatalf("%q: %+v", dir, e)
		}
		at := filepath.Join(bin, "files", e.Name)
		_, st := h.run(c, id, "cd '"+filepath.Join(h.ws, dir)+"'; rm -rf "+own+"; mv "+own+" x; echo y > "+own+"/files/f; rm -f "+own+"/info/*; find . -mindepth 1 -maxdepth 1 -name '.T*' -exec rm -rf {} +; chmod 777 "+own)
		if len(st.denials) == 0 {
			t.Errorf("%q: nothing was denied: %s", dir, st.text)
		}
		holds(t, root+at, "thrown away")
		absent(t, root+filepath.Join(h.ws, dir, "x"))
		for _, p := range []string{at, filepath.Join(bin, "info", e.Name+record.InfoSuffix)} {
			refused(h, c, api.FSReadText, api.FSReadTextParams{FileRef: ref(id, p)}, fence.CodeSandboxDenied)
			refused(h, c, api.FSWriteText, api.FSWriteTextParams{FileRef: ref(id, p), Content: "y"}, fence.CodeSandboxDenied)
		}
		refused(h, c, api.FSMovePath, api.FSMovePathParams{FileRef: ref(id, bin), Destination: "elsewhere"}, fence.CodeSandboxDenied)
		if got := h.restored(c, api.TrashRestoreParams{SessionID: id, ID: e.ID}); got != filepath.Join(h.ws, dir, "f") {
			t.Error(got)
		}
		if after := shot(t, root+filepath.Join(h.ws, dir, "f")); after != before {
			t.Errorf("%q: %s, was %s", dir, after, before)
		}
	}
}

// What a command removed comes back through its session, as far as the fence of
// the moment allows it.
func TestTrashOfACommand(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	s := h.open(c, fence.WorkspaceWrite, func(p *api.SessionOpenParams) {
		p.Policies = []api.PolicyRef{{Inline: []byte(`{"trashCommands":true}`)}}
		p.WritableRoots = []string{h.outside}
	})
	if !s.Fence.TrashCommands {
		t.Fatalf("%+v", s.Fence)
	}
	id := s.SessionID
	narrow := h.open(c, fence.WorkspaceWrite).SessionID
	sub, err := c.Subscribe(h.ctx(), api.EventsSubscribeParams{Types: []string{"trash.restored"}})
	if err != nil {
		t.Fatal(err)
	}
	h.put("d/e/f", "f", 0o640)
	out := h.put(filepath.Join(h.outside, "g"), "g", 0o600)
	before := shot(t, filepath.Join(h.ws, "d/e/f"))
	p, st := h.run(c, id, "rm -rf d "+out)
	if st.code != 0 {
		t.Fatal(st.text)
	}
	absent(t, filepath.Join(h.ws, "d"))
	absent(t, out)
	refused(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: id, ProcessID: "nobody"}, record.CodeNotFound)
	r := do(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: narrow, ProcessID: p.ProcessID})
	g := r.Group
	if g == nil || g.Files != 1 || g.Directories != 2 || g.NotRestored != 1 || len(g.Left) != 1 || g.Left[0].Path != out || g.Left[0].Code != fence.CodeSandboxDenied {
		t.Fatalf("%+v", g)
	}
	absent(t, out)
	if after := shot(t, filepath.Join(h.ws, "d/e/f")); after != before {
		t.Errorf("%s, was %s", after, before)
	}
	if d, e := next(h, sub, api.EventTrashRestored); d != (api.TrashRestoredData{ProcessID: p.ProcessID, Files: 1, Directories: 2, NotRestored: 1}) || e.SessionID != narrow {
		t.Errorf("told %+v", d)
	}
	r = do(h, c, api.TrashRestore, api.TrashRestoreParams{SessionID: id, ProcessID: p.ProcessID})
	if r.Group.Files != 1 || r.Group.NotRestored != 0 {
		t.Errorf("%+v", r.Group)
	}
	holds(t, out, "g")
}

// C9: what is never deleted, permanent or not; and a command that tries.
func TestC9NeverDeleted(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	keep := h.put(filepath.Join(h.home, "keep"), "k", 0o644)
	out := h.put(filepath.Join(h.outside, "keep"), "k", 0o644)
	h.put("f", "f", 0o644)
	h.put("a/f", "f", 0o644)
	for _, mode := range []fence.Mode{fence.WorkspaceWrite, fence.FullAccess} {
		id := h.open(c, mode).SessionID
		for _, p := range []string{h.home, filepath.Dir(h.ws), h.dir, h.ws, ".", "", "/", "a/..", filepath.Join(h.home, ".local")} {
			for _, permanent := range []bool{false, true} {
				_, err := client.Do(h.ctx(), c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, p), Permanent: permanent, Recursive: true})
				e := (*api.Error)(nil)
				if !errors.As(err, &e) || !strings.Contains(string(e.Data), `"outcome":"rejected"`) {
					t.Errorf("%s: delete %q, permanent %v: %v", mode, p, permanent, err)
				}
			}
		}
		holds(t, filepath.Join(h.ws, "f"), "f")
		if mode.Fenced() {
			h.run(c, id, `rm -rf "`+h.home+`" "`+h.outside+`"; cd "`+h.ws+`" && rm -rf "$PWD/../../outside" "$PWD/.."`)
		}
		holds(t, keep, "k")
		holds(t, out, "k")
		h.put("f", "f", 0o644) // a command may delete in the workspace
		h.put("a/f", "f", 0o644)
	}
	if got := h.originals(c, api.TrashListParams{}); len(got) != 0 {
		t.Errorf("in the trash: %q", got)
	}
}

// C10: a delete takes exactly the path that it was given.
func TestC10ExactlyThePath(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	id := h.open(c, fence.WorkspaceWrite).SessionID
	h.put(".gitignore", "data/\n", 0o644)
	for _, permanent := range []bool{false, true} {
		h.put("data/keep", "k", 0o644)
		h.put("data/x/a", "a", 0o644)
		r := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, "data/x"), Permanent: permanent, Recursive: true})
		if permanent && r.Entries != 2 {
			t.Errorf("%+v", r)
		}
		absent(t, filepath.Join(h.ws, "data/x"))
		holds(t, filepath.Join(h.ws, "data/keep"), "k")
	}
	if got := h.originals(c, api.TrashListParams{SessionID: id}); !slices.Equal(got, []string{"data/x"}) {
		t.Errorf("%q", got)
	}
}

// Without a trash every delete is outright, and says so; what is in it is still
// the user's.
func TestTrashOff(t *testing.T) {
	h := newHouse(t).start()
	c := h.dial()
	id := h.open(c, fence.WorkspaceWrite).SessionID
	h.put("before", "b", 0o644)
	e := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, "before")}).Trashed
	_ = c.Close()
	h.stop()
	h.start("TEST_DAEMON_TRASH_OFF=1")
	c = h.dial()
	id = h.open(c, fence.WorkspaceWrite).SessionID
	h.put("f", "f", 0o644)
	h.put("d/g", "g", 0o644)
	for _, p := range []string{"f", "d"} {
		if r := do(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, p), Recursive: true}); r.Outcome != record.Deleted || r.Trashed != nil {
			t.Errorf("%s: %+v", p, r)
		}
		absent(t, filepath.Join(h.ws, p))
	}
	if got := h.originals(c, api.TrashListParams{}); !slices.Equal(got, []string{"before"}) {
		t.Errorf("%q", got)
	}
	h.restored(c, api.TrashRestoreParams{SessionID: id, ID: e.ID})
	holds(t, filepath.Join(h.ws, "before"), "b")
	refused(h, c, api.FSDeletePath, api.FSDeletePathParams{FileRef: ref(id, h.bin()), Recursive: true}, record.CodeRejected)
}

// deleteOne is this test binary, started again as somebody else: it deletes one
// path in process and prints what came of it.
func deleteOne(ws, path string, across bool) error {
	places, err := daemon.FindPlaces(os.Getenv)
	if err != nil {
		return err
	}
	h, err := daemon.NewHost(places, daemon.HostOptions{Ephemeral: true})
	if err != nil {
		return err
	}
	defer h.Close()
	s, err := h.Open(context.Background(), daemon.OpenRequest{Workspace: ws, Mode: fence.WorkspaceWrite, Documents: []policies.Document{}})
	if err != nil {
		return err
	}
	defer s.Close(context.Background(), api.ClosedByClient)
	began := time.Now()
	r, err := s.DeletePath(context.Background(), &api.FSDeletePathParams{FileRef: ref(s.ID(), path), CopyAcross: across})
	said := deleted{Outcome: string(r.Outcome), Ms: time.Since(began).Milliseconds()}
	if err != nil {
		e := api.ErrorOf(err)
		said.Code, said.Message, said.Data = e.Stable(), e.Message, string(e.Data)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

type deleted struct {
	Outcome, Code, Message, Data string
	Ms                           int64
}

// C5: where no trash can be made and a copy was not asked for, the file stays,
// and the answer says what can be done.
func TestC5NoTrashCanBeMade(t *testing.T) {
	h := newHouse(t)
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	bin := filepath.Join(h.dir, "test")
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(bin, exe, 0o755), os.Chmod(h.dir, 0o755), os.Chown(h.home, asuser.ID, asuser.ID)); err != nil {
		t.Fatal(err)
	}
	run := func(across bool) (deleted, string) {
		t.Helper()
		cmd := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-ec", `
			mount -t tmpfs -o mode=755 none "$W"
			mkdir "$W/u"; head -c 50000000 /dev/urandom > "$W/u/big"; chmod 640 "$W/u/big"; touch -d '2011-12-13 14:15:16' "$W/u/big"; chown -R 65534:65534 "$W/u"
			sum=$(stat -c '%a %Y' "$W/u/big"; md5sum < "$W/u/big")
			setpriv --reuid 65534 --regid 65534 --clear-groups "$0"
			if [ -e "$W/u/big" ]; then echo "stays $([ "$sum" = "$(stat -c '%a %Y' "$W/u/big"; md5sum < "$W/u/big")" ] && echo same)"; else echo gone; fi
			f="$HOME/.local/share/Trash/files/big"
			if [ -e "$f" ]; then echo "trashed $([ "$sum" = "$(stat -c '%a %Y' "$f"; md5sum < "$f")" ] && echo same)"; fi
			ls -A "$W"; ls -A "$W/u"`, bin)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, "W=" + h.ws, "TEST_DAEMON_DELETE=" + filepath.Join(h.ws, "u", "big"), "TEST_DAEMON_WORKSPACE=" + filepath.Join(h.ws, "u")}
		if across {
			cmd.Env = append(cmd.Env, "TEST_DAEMON_ACROSS=1")
		}
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		first, rest, _ := strings.Cut(string(out), "\n")
		var d deleted
		if err := json.Unmarshal([]byte(first), &d); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return d, rest
	}
	d, disk := run(false)
	if d.Code != record.CodeUnavailable || !strings.Contains(d.Data, `"outcome":"failed","reason":"trash_backend_unavailable"`) ||
		!strings.Contains(d.Message, "permanent") || !strings.Contains(d.Message, "copyAcross") || !strings.Contains(d.Message, h.ws) {
		t.Errorf("%+v", d)
	}
	if disk != "stays same\nu\nbig\n" {
		t.Errorf("on disk: %q", disk)
	}
	if d.Ms > 1000 {
		t.Errorf("it took %d ms", d.Ms)
	}
	d, disk = run(true)
	if d.Outcome != string(record.Trashed) || disk != "gone\ntrashed same\nu\n" {
		t.Errorf("%+v, on disk: %q", d, disk)
	}
}
