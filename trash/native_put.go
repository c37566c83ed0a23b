package trash

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// nativeForward ends the text of every refusal for want of a trash here: there
// is no copy into another one.
const nativeForward = "; delete it permanently"

// notKept is the error of a thing that the system would not keep. It is in
// place.
func notKept(path, why string, cause error) *record.Error {
	return failure(record.CodeUnavailable, record.ReasonBackend, opPut, path, why+nativeForward, cause)
}

// put has no use for copyAcross: the systems have a trash for every volume that
// can have one.
func (n *native) put(ctx context.Context, dir *anchor.Dir, name, path string, want anchor.Info, _ bool) (record.Entry, error) {
	if err := ctx.Err(); err != nil {
		return record.Entry{}, failed(opPut, path, "", err)
	}
	t := &subject{dir: dir, name: name, path: path, at: filepath.Join(filepath.Dir(path), name)}
	if err := n.inspect(t, want); err != nil {
		return record.Entry{}, err
	}
	if err := n.sys.refuse(ctx, t); err != nil {
		return record.Entry{}, err
	}
	free, err := n.turn(ctx, path)
	if err != nil {
		return record.Entry{}, err
	}
	k := &kept{id: newID(), kind: typeOf(t.info), inode: t.info.Ino, info: record.Info{Path: path, Deleted: n.now()}}
	r, err := n.openRecords(true)
	if err != nil {
		free()
		return record.Entry{}, notKept(path, "its record cannot be written in "+n.recordsPath(), err)
	}
	defer r.close()
	if err := r.write(k); err != nil {
		free()
		return record.Entry{}, failed(opPut, path, "its record cannot be written in "+n.recordsPath(), err)
	}
	// Once more, as near to the call as can be.
	if err := t.still(); err != nil {
		free()
		_ = r.drop(k.id)
		return record.Entry{}, err
	}
	a, answered := n.ask(t, k, free)
	if !answered {
		e := k.entry(t.info, record.Broken)
		u := unknown(opPut, path, "the system has not answered within "+n.limit.String()+"; look at the path and at the trash before anything else", &e, context.DeadlineExceeded)
		u.Reason = record.ReasonTimeout
		return record.Entry{}, u
	}
	return n.conclude(r, t, k, a)
}

// inspect makes every check for which nothing needs to be made.
func (n *native) inspect(t *subject, want anchor.Info) *record.Error {
	reject := func(r record.Reason, why string) *record.Error {
		return failure(record.CodeRejected, r, opPut, t.path, why, nil)
	}
	if !plainPath(t.path) || anchor.CheckName(t.name) != nil {
		return reject(record.ReasonInvalidPath, "the path is not canonical")
	}
	if !utf8.ValidString(t.at) {
		return reject(record.ReasonInvalidPath, "the path is no UTF-8, and the system would be asked for another one")
	}
	if n.holds(t.path) || n.holds(t.at) {
		return reject(record.ReasonProtected, "it is a trash directory, lies in one, or contains one")
	}
	mounted, err := t.dir.IsMountPoint(t.name)
	if err != nil {
		return failed(opPut, t.path, "", err)
	}
	if mounted {
		return reject(record.ReasonProtected, "something is mounted there")
	}
	t.info = want
	if err := t.still(); err != nil {
		return err
	}
	if i, err := lookAt(t.dir, t.name); err == nil && sameThing(i, want) {
		t.info = i // the caller may not have had an identity
	}
	if !t.info.IsRegular() && !t.info.IsDir() && !t.info.IsSymlink() {
		return reject(record.ReasonUnsupportedType, "it is neither file nor directory nor link")
	}
	return nil
}

// still tells whether the path leads to the thing: its directory is where the
// path says, and has it under the name.
func (t *subject) still() *record.Error {
	stale := func(why string, err error) *record.Error {
		return failure(codeStale, record.ReasonOperationFailed, opPut, t.path, why, err)
	}
	at, err := anchor.OpenDir(filepath.Dir(t.path))
	if err != nil {
		return stale("its directory is not at that path any more", err)
	}
	defer at.Close()
	a, err := at.Stat()
	b, berr := t.dir.Stat()
	if err = errors.Join(err, berr); err != nil {
		return failed(opPut, t.path, "", err)
	}
	if !a.SameFile(b) {
		return stale("its directory is not at that path any more", nil)
	}
	i, err := lookAt(t.dir, t.name)
	if err != nil {
		return failed(opPut, t.path, "", err)
	}
	if !sameThing(i, t.info) {
		return stale("another thing has that name now", nil)
	}
	return nil
}

// turn waits for a place among the calls to the system. free gives it back.
func (n *native) turn(ctx context.Context, path string) (free func(), err error) {
	limit := time.NewTimer(n.limit)
	defer limit.Stop()
	select {
	case n.turns <- struct{}{}:
		return func() { <-n.turns }, nil
	case <-ctx.Done():
		return nil, failed(opPut, path, "", ctx.Err())
	case <-limit.C:
		return nil, notKept(path, "the system's trash has not answered earlier calls", nil)
	}
}

// answer is what the system said.
type answer struct {
	landing string
	err     error
}

// ask asks the system, and waits for its answer until the limit. A call that
// has begun cannot be broken off, so the caller's context does not count. The
// goroutine ends when the system answers, and calls free; what is answered too
// late it writes down itself.
func (n *native) ask(t *subject, k *kept, free func()) (answer, bool) {
	answered := make(chan answer) // taken, or given up by over
	over := make(chan struct{})
	path, info, late := t.at, t.info, *k
	go func() {
		defer free()
		landing, err := n.sys.trash(path)
		select {
		case answered <- answer{landing, err}:
		case <-over:
			if err == nil {
				n.arrived(&late, landing, info)
			}
		}
	}()
	limit := time.NewTimer(n.limit)
	defer limit.Stop()
	select {
	case a := <-answered:
		return a, true
	case <-limit.C:
		close(over)
		return answer{}, false
	}
}

// arrived completes the record of a thing that landed after the limit. Without
// that the record says that nothing is known, which is what was answered.
func (n *native) arrived(k *kept, landing string, info anchor.Info) {
	if !plainPath(landing) {
		return
	}
	dir, _, p, _ := landingOf(landing, func(i anchor.Info) bool { return sameThing(i, info) })
	if dir != nil {
		dir.Close()
	}
	if p != itself {
		return
	}
	if r, err := n.openRecords(true); err == nil {
		_ = r.landed(k, landing)
		r.close()
	}
}

// verdict is what became of a thing.
type verdict int

const (
	trashed  verdict = iota
	untried          // it failed, and the thing is in place
	unsure           // nobody can say
	exchange         // another thing was trashed in its place
)

// judge decides by what the system said, and by what lies at both places
// afterwards. What the system says counts only together with that.
func judge(said error, source, landing presence) (verdict, string) {
	switch {
	case errors.Is(said, context.DeadlineExceeded):
		return unsure, "the system was too slow"
	case said != nil && source == itself:
		return untried, "the system refused it"
	case said != nil && source == hidden:
		return unsure, "the system failed, and its place cannot be looked at"
	case said != nil:
		return unsure, "the system failed, and it is gone from its place"
	case source == itself:
		return unsure, "the system says that it was trashed, and it is still there"
	case landing == itself:
		return trashed, ""
	case landing == gone:
		return unsure, "the system says that it was trashed, and it is not where it should have landed"
	case landing == other && source == gone:
		return exchange, "another thing was trashed"
	case landing == hidden && source == gone:
		// Programs may be kept from looking into the trash of their own user.
		return trashed, ""
	}
	return unsure, "the system says that it was trashed, and neither place shows it"
}

// conclude looks at both places and ends the call.
func (n *native) conclude(r *records, t *subject, k *kept, a answer) (record.Entry, error) {
	if a.err == nil && a.landing != "" && !plainPath(a.landing) {
		a.landing = ""
	}
	source := gone
	switch i, err := lookAt(t.dir, t.name); {
	case err == nil && sameThing(i, t.info):
		source = itself
	case err == nil:
		source = other
	case !errors.Is(err, fs.ErrNotExist):
		source = hidden
	}
	landing := gone
	var at *anchor.Dir
	if a.err == nil && a.landing != "" {
		at, _, landing, _ = landingOf(a.landing, func(i anchor.Info) bool { return sameThing(i, t.info) })
		if at != nil {
			defer at.Close()
		}
	}
	v, why := judge(a.err, source, landing)
	switch v {
	case untried:
		_ = r.drop(k.id) // what stays has no landing place, and says so
		return record.Entry{}, systemFailure(t.path, why, a.err)
	case exchange:
		return record.Entry{}, n.giveBack(r, t, k, at, a)
	case unsure:
		e := k.entry(t.info, record.Broken)
		if a.landing != "" {
			e.TrashDir, e.Name = filepath.Dir(a.landing), filepath.Base(a.landing)
		}
		u := unknown(opPut, t.path, why+"; look at both before anything else", &e, a.err)
		if errors.Is(a.err, context.DeadlineExceeded) {
			u.Reason = record.ReasonTimeout
		}
		return record.Entry{}, u
	}
	if err := r.landed(k, a.landing); err != nil {
		e := k.entry(t.info, record.OK)
		return record.Entry{}, unknown(opPut, t.path, "it was moved, and its record cannot be finished", &e, err)
	}
	if n.sync {
		_ = t.dir.Sync() // it is in the trash already
	}
	return k.entry(t.info, record.OK), nil
}

// giveBack moves back what was swapped in and trashed instead of the thing.
func (n *native) giveBack(r *records, t *subject, k *kept, at *anchor.Dir, a answer) *record.Error {
	landed := filepath.Base(a.landing)
	if err := moveNoReplace(at, landed, t.dir, t.name); err != nil {
		k.landing = a.landing
		e := k.entry(t.info, record.Broken)
		return unknown(opPut, t.path, "another thing was moved, and cannot be moved back", &e, err)
	}
	n.dropCompanion(at, landed)
	_ = r.drop(k.id)
	return failure(codeStale, record.ReasonOperationFailed, opPut, t.path, "another thing has that name now", nil)
}

// dropCompanion removes what the system keeps beside something that left its
// trash. What stays of it is the system's to clear away.
func (n *native) dropCompanion(at *anchor.Dir, landed string) {
	if c := n.sys.companion(landed); c != "" {
		if i, err := at.Lstat(c); err == nil && i.IsRegular() {
			_ = at.Unlink(c)
		}
	}
}

// systemError is a refusal of the system's trash.
type systemError struct {
	// is fs.ErrPermission, fs.ErrNotExist, errors.ErrUnsupported (there is no
	// trash for this thing), or nil.
	is   error
	text string
}

func (s *systemError) Error() string { return s.text }
func (s *systemError) Unwrap() error { return s.is }

// systemFailure is the error of a thing that the system refused and that is in
// place.
func systemFailure(path, why string, said error) *record.Error {
	if errors.Is(said, errors.ErrUnsupported) {
		return notKept(path, why, said)
	}
	e := failed(opPut, path, why, said)
	if e.Code == codeNotFound {
		// It is there: what is missing is on the system's side.
		e.Code = record.CodeFailed
	}
	return e
}

// oneLine shortens what a program said, for a message.
func oneLine(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > most {
		s = s[:most] + "…"
		s = strings.ToValidUTF8(s, "")
	}
	return s
}
