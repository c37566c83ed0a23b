package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
	"github.com/wattle-dev/wattle/trash"
)

// Host is what sessions run on: the rooms below, wired for one user. The daemon
// has one for its life, `wattle run` one for its command. Any number of
// goroutines may use one at once.
type Host struct {
	places  Places
	own     []string
	library policies.Library
	environ []string
	runner  *sandbox.Runner
	files   provider.Provider
	bin     *trash.Bin
	scratch *scratch.Manager
	log     zerolog.Logger
	publish func(api.Event)
	// ephemeral is a directory that stands for the user's own, removed by
	// Close; "" when those can be used.
	ephemeral string
}

// HostOptions configure a Host. Zero values are usable.
type HostOptions struct {
	// Socket is the control socket, hidden from every fence.
	Socket string
	// PolicyDir is looked into before the places' own.
	PolicyDir string
	// Environ is what commands' environments may pass from; nil is ours.
	Environ []string
	// Kernel replaces what the kernel can enforce, for tests.
	Kernel *fence.Kernel
	Logger *zerolog.Logger
	// Ephemeral: for one command, not for a daemon. Where the user's state and
	// cache directories cannot be made (a service user without a home), a
	// temporary directory stands for them; and records are left to the kernel
	// to flush: they survive a crash of the process, not of the machine.
	Ephemeral bool
	// TrashOff makes every delete one that is permanent, also of commands whose
	// policy says trash_commands. What is in the trash
	// can be listed, restored and emptied all the same.
	TrashOff bool
	// Publish takes the events of sessions; nil drops them.
	Publish func(api.Event)
}

// maxEdit bounds the file of an edit: its result carries the text before and
// after, and must fit into one reply however much of it has to be escaped.
const maxEdit = 8 << 20

// NewHost wires the rooms. It makes the state and cache directories, 0700.
func NewHost(p Places, o HostOptions) (*Host, error) {
	h := &Host{places: p, own: p.Own(o.Socket), environ: o.Environ, log: nopLogger, publish: o.Publish}
	if o.Logger != nil {
		h.log = *o.Logger
	}
	if h.environ == nil {
		h.environ = os.Environ()
	}
	if h.publish == nil {
		h.publish = func(api.Event) {}
	}
	h.library = policies.Library{Dirs: p.PolicyDirs}
	if o.PolicyDir != "" {
		h.library.Dirs = append([]string{o.PolicyDir}, h.library.Dirs...)
	}
	if err := h.prepare(o.Ephemeral); err != nil {
		return nil, err
	}
	p = h.places
	bin, err := newBin(p)
	if err != nil {
		return nil, err
	}
	h.bin = bin
	files, err := provider.NewLocal(provider.Config{
		EditMaxBytes: maxEdit, Home: p.Home, Trash: bin, TrashOff: o.TrashOff, TempDirs: tempDirs(p.Home),
	})
	if err != nil {
		return nil, err
	}
	h.files = files
	if h.scratch, err = scratch.NewManager(scratch.Options{StateDir: p.State, Home: p.Home, NoSync: o.Ephemeral}); err != nil {
		return nil, err
	}
	so := sandbox.Options{Kernel: o.Kernel, TempRoot: p.TempRoot(), OwnChildren: true}
	if !o.TrashOff {
		so.Keeper = keeper{bin}
	}
	h.runner = sandbox.NewRunner(so)
	return h, nil
}

// prepare makes the state and cache directories.
func (h *Host) prepare(ephemeral bool) error {
	for _, d := range []string{h.places.State, h.places.Cache, h.places.TempRoot()} {
		err := makePrivate(d)
		switch {
		case err == nil:
			continue
		case !ephemeral || h.ephemeral != "":
			return fmt.Errorf("prepare %s: %w", d, err)
		}
		tmp, terr := os.MkdirTemp("", "wattle-") // 0700
		if terr != nil {
			return fmt.Errorf("prepare %s: %w", d, errors.Join(err, terr))
		}
		if r, rerr := fence.Canonical(tmp); rerr == nil {
			tmp = r.Path
		}
		h.ephemeral = tmp
		h.places.State, h.places.Cache = filepath.Join(tmp, "state"), filepath.Join(tmp, "cache")
		h.own = append(h.own, h.places.State)
		return h.prepare(ephemeral)
	}
	return nil
}

// Sweep removes the scratch of sessions whose daemon is dead, and says what it
// did. Call it once, before the first session.
func (h *Host) Sweep(ctx context.Context) (scratch.SweepReport, error) { return h.scratch.Sweep(ctx) }

// Close ends every command. Sessions must have been closed before.
func (h *Host) Close() {
	h.runner.Close()
	_ = h.scratch.Close()
	h.closeBin()
	if h.ephemeral == "" {
		return
	}
	if d, err := anchor.OpenDir(filepath.Dir(h.ephemeral)); err == nil {
		_, _, _ = d.RemoveTree(context.Background(), filepath.Base(h.ephemeral), anchor.RemoveOptions{})
		_ = d.Close()
	}
}

// Enforcement is what a fence on this machine holds.
func (h *Host) Enforcement() fence.Enforcement { return h.runner.Enforcement() }

// Library finds policies for a workspace.
func (h *Host) Library(workspace string) policies.Library {
	l := h.library
	l.Workspace = workspace
	return l
}

// makePrivate makes a directory and its parents, and closes it to others.
func makePrivate(dir string) error {
	r, err := fence.Canonical(dir)
	if err != nil {
		return err
	}
	root, err := anchor.OpenDir(string(filepath.Separator))
	if err != nil {
		return err
	}
	defer root.Close()
	rel := strings.TrimPrefix(r.Path, string(filepath.Separator))
	d, err := root.MkdirAll(rel, 0o700)
	if err != nil {
		return err
	}
	return d.Close()
}

// OpenRequest is what a session is to be.
type OpenRequest struct {
	Workspace string
	Mode      fence.Mode
	// Policies are names of presets and policy files, in order; Documents come
	// after them: files that a person named, or what a client sent inline.
	Policies  []string
	Documents []policies.Document
	// WritableRoots are further roots, Network replaces the policies' choice.
	WritableRoots []string
	Network       fence.Network
	// Scratch is what differs from the default: autoClean turn, siblingDir tmp.
	Scratch scratch.Overrides
	// Observation: a file must be read before it is overwritten or edited
	// (fs-contract section 6).
	Observation bool
}

// Errors of a workspace that cannot be used, and of sessions (PROTOCOL
// section 1, -32014).
const (
	codeNotHeld    = "SESSION_NOT_HELD"
	codeGrant      = "POLICY_GRANT_REFUSED"
	codeBadCommand = sandbox.CodeInvalid
)

// Open makes a session: its fence is compiled, its scratch is prepared (it is
// made when it is first needed). Errors: SESSION_WORKSPACE_INVALID,
// POLICY_INVALID, POLICY_NOT_FOUND, POLICY_ROOT_REFUSED.
func (h *Host) Open(ctx context.Context, req OpenRequest) (*Session, error) {
	ws, err := workspace(req.Workspace)
	if err != nil {
		return nil, err
	}
	docs, err := h.Library(ws).Session(req.Policies...)
	if err != nil {
		return nil, err
	}
	s := &Session{
		host: h, id: newID(), workspace: ws, mode: req.Mode, docs: append(docs, req.Documents...),
		roots: req.WritableRoots, network: req.Network, token: rand.Text(),
		commands: map[string]*Command{}, opened: time.Now(),
	}
	if req.Observation {
		s.seen = provider.NewObservations(0)
	}
	if err := s.prepareScratch(req.Scratch); err != nil {
		return nil, err
	}
	if s.fence, err = s.compile(s.mode, s.workspace, nil); err != nil {
		if s.scratch != nil {
			_, _ = s.scratch.Close(ctx) // nothing was made yet
		}
		s.dropTemp()
		return nil, err
	}
	s.mode = s.fence.Mode()
	s.life, s.endLife = context.WithCancel(context.Background())
	return s, nil
}

func newID() string { return strings.ToLower(rand.Text()) }

// workspace makes a workspace canonical, or says what is wrong with it.
func workspace(p string) (string, error) {
	bad := func(why string) error {
		return api.NewError(api.CodeSessionWorkspace, fmt.Sprintf("open session: workspace %q %s", p, why), "path", p)
	}
	if p == "" {
		return "", bad("is empty; name an absolute path")
	}
	if !filepath.IsAbs(p) {
		return "", bad("is not absolute")
	}
	r, err := fence.Canonical(p)
	if err != nil {
		return "", bad("cannot be used: " + rootCause(err))
	}
	if !r.Exists {
		return "", bad("does not exist")
	}
	fi, err := os.Stat(r.Path)
	if err != nil {
		return "", bad("cannot be used: " + rootCause(err))
	}
	if !fi.IsDir() {
		return "", bad("is not a directory")
	}
	return r.Path, nil
}

func rootCause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// hiddenScratch hides the scratch of all sessions beside a workspace. A
// session's own is visible to it all the same (package fence).
func hiddenScratch(parent string) fence.Entry {
	hex := strings.Repeat("[0-9a-f]", 7)
	return fence.Entry{Path: filepath.Join(fence.EscapeGlob(parent), "*-"+hex+"*"), Source: "mode"}
}
