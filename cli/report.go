package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/sandbox"
)

// deniedLine and exitedLine are the lines of a report (PROTOCOL section 3).
type deniedLine struct {
	Type string `json:"type"` // "denied"
	fence.Denial
}

type exitedLine struct {
	Type string `json:"type"` // "exited"
	// ProcessID is for `trash restore --process`; only where what the command
	// removed was kept.
	ProcessID string `json:"processId,omitzero"`
	sandbox.State
}

func exitedOf(id string, st sandbox.State) exitedLine {
	l := exitedLine{Type: "exited", State: st}
	if st.Kept != nil && st.Kept.Count > 0 {
		l.ProcessID = id
	}
	return l
}

// report is the file of run --report: JSON lines, each written whole by one
// write(2) at the end of the file, so that whatever dies leaves whole lines.
// A refusal is written when it happens, for the first of equal ones; how often
// it happened stands in the last line. A nil report takes everything and
// writes nothing.
type report struct {
	path string

	mu   sync.Mutex
	file *os.File
	told int   // denials so far; they come in the order of State.Denials
	err  error // the first one; nothing is written after it
}

// openReport opens the file before the command runs, empty. It is opened
// outside the fence, so that it must not be led astray by what an earlier
// command left in a writable root: from there on no link is followed, and a
// file with another name is refused.
func openReport(path string, f *fence.Fence) (*report, error) {
	r := &report{path: path}
	file, err := r.open(f)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			err = errors.New("a link stands in its way")
		}
		return nil, fmt.Errorf("open report %s: %w", path, err)
	}
	r.file = file
	return r, nil
}

func (r *report) open(f *fence.Fence) (*os.File, error) {
	abs, err := filepath.Abs(r.path)
	if err != nil {
		return nil, err
	}
	dir, err := reportDir(filepath.Dir(abs), f)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := dir.Open(filepath.Base(abs), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	if err := emptied(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// reportDir opens the directory of the report. Links that lead there are the
// user's own up to the first writable root.
func reportDir(dir string, f *fence.Fence) (*anchor.Dir, error) {
	at := filepath.VolumeName(dir) + string(filepath.Separator)
	rest, err := filepath.Rel(at, dir)
	if err != nil {
		return nil, err
	}
	for {
		here, err := fence.Canonical(at)
		if err != nil {
			return nil, err
		}
		if rest == "." || rootCovers(f, here.Path) {
			d, err := anchor.OpenDir(here.Path)
			if err != nil {
				return nil, err
			}
			defer d.Close()
			return d.Walk(rest)
		}
		name, below := cutFirst(rest)
		at, rest = filepath.Join(at, name), below
	}
}

func rootCovers(f *fence.Fence, path string) bool {
	for _, w := range f.WritableRoots() {
		if fence.PathCovers(w, path) {
			return true
		}
	}
	return false
}

// cutFirst splits a clean relative path behind its first component; the rest
// is "." when there is none.
func cutFirst(rel string) (first, rest string) {
	for i := range rel {
		if os.IsPathSeparator(rel[i]) {
			return rel[:i], rel[i+1:]
		}
	}
	return rel, "."
}

// emptied empties a regular file that has one name.
func emptied(file *os.File) error {
	i, err := anchor.StatFile(file)
	switch {
	case err != nil:
		return err
	case !i.IsRegular():
		return errors.New("it is no regular file")
	case i.Nlink > 1:
		return errors.New("the file has other names too")
	}
	return file.Truncate(0)
}

// published takes the events of the session.
func (r *report) published(e api.Event) {
	if r == nil || e.Type != api.EventProcessDenied.Name {
		return
	}
	if d, err := api.EventProcessDenied.Decode(e); err == nil {
		r.denied(d.Denial)
	}
}

func (r *report) denied(d fence.Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told++
	r.write(deniedLine{"denied", d})
}

// exited writes the last line, behind what nobody has told yet.
func (r *report) exited(id string, st sandbox.State) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for ; r.told < len(st.Denials); r.told++ {
		r.write(deniedLine{"denied", st.Denials[r.told]})
	}
	r.write(exitedOf(id, st))
}

// failed writes the last line of a command that never ran.
func (r *report) failed(err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(errorLine{"error", *wire(err)})
}

// write is called with mu held.
func (r *report) write(line any) {
	if r.err != nil {
		return
	}
	b, err := encodeLine(line)
	if err == nil {
		_, err = r.file.Write(b)
	}
	r.err = err
}

// close tells the first error of any write.
func (r *report) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.err, r.file.Close()); err != nil {
		return fmt.Errorf("write report %s: %w", r.path, err)
	}
	return nil
}
