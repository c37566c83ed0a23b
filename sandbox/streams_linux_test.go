package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// recorder is an Observer that keeps what it is told, in order.
type recorder struct {
	mu      sync.Mutex
	events  []string // "output", "denied", "exited", "closed"
	chunks  []sandbox.Chunk
	denials []fence.Denial
	exited  sandbox.State
	closed  sandbox.State
}

func (r *recorder) note(what string, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, what)
	f()
}

func (r *recorder) Output(c sandbox.Chunk) {
	r.note("output", func() { r.chunks = append(r.chunks, c) })
}
func (r *recorder) Denied(d fence.Denial) {
	r.note("denied", func() { r.denials = append(r.denials, d) })
}
func (r *recorder) Exited(s sandbox.State) { r.note("exited", func() { r.exited = s }) }
func (r *recorder) Closed(s sandbox.State) { r.note("closed", func() { r.closed = s }) }

func (r *recorder) count(what string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e == what {
			n++
		}
	}
	return n
}

func observed(r *recorder) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.Observer = r }
}

// TestOutputIsNumbered: chunks of both streams count from 1 without holes, the
// observer sees them in order, and their bytes are the command's.
func TestOutputIsNumbered(t *testing.T) {
	l := newLab(t)
	rec := &recorder{}
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `for i in $(seq 2000); do echo out $i; echo err $i >&2; done; printf 'caf\xe9 \xff\xfe\x00 \xf0\x9f'`, observed(rec)))
	var all []sandbox.Chunk
	ctx := context.Background()
	for after := int64(0); ; {
		o := p.Read(ctx, after, 5000, patience)
		if o.Truncated {
			t.Fatal("truncated below the limit")
		}
		total := 0
		for _, c := range o.Chunks {
			total += len(c.Data)
		}
		if len(o.Chunks) > 1 && total > 5000 {
			t.Errorf("%d bytes in %d chunks", total, len(o.Chunks))
		}
		all = append(all, o.Chunks...)
		if after = o.NextSeq; o.Closed && len(o.Chunks) == 0 {
			break
		}
	}
	eventually(t, "the observer is told", func() bool { return rec.count("closed") == 1 })
	for name, chunks := range map[string][]sandbox.Chunk{"read": all, "observed": rec.chunks} {
		var out, errs strings.Builder
		for i := 1; i <= 2000; i++ {
			fmt.Fprintln(&out, "out", i)
			fmt.Fprintln(&errs, "err", i)
		}
		out.WriteString("caf\xe9 \xff\xfe\x00 \xf0\x9f")
		for i, c := range chunks {
			if c.Seq != int64(i+1) {
				t.Fatalf("%s: chunk %d has number %d", name, i, c.Seq)
			}
			if len(c.Data) == 0 || len(c.Data) > 32<<10 {
				t.Errorf("%s: a chunk of %d bytes", name, len(c.Data))
			}
		}
		if o, e := collect(chunks); o != out.String() || e != errs.String() {
			t.Errorf("%s: bytes differ (%d, %d)", name, len(o), len(e))
		}
	}
	if n := len(rec.events); rec.events[n-2] != "exited" && rec.count("exited") != 1 || rec.events[n-1] != "closed" {
		t.Errorf("events end with %q", rec.events[n-2:])
	}
}

// TestOutputIsBounded: a flood neither blocks the command nor grows; the
// latest bytes are kept and the loss is marked.
func TestOutputIsBounded(t *testing.T) {
	l := newLab(t)
	r := l.ws(`seq -f %019.0f 1000000; echo end`, func(s *sandbox.Spec) { s.MaxOutput = 100 << 10 })
	if r.code() != 0 || !strings.HasSuffix(r.stdout, "0000000000001000000\nend\n") {
		t.Errorf("exit %d, ends %q", r.code(), tail([]byte(r.stdout[max(0, len(r.stdout)-100):])))
	}
	if n := len(r.stdout); n > 100<<10 || n < 60<<10 {
		t.Errorf("%d bytes kept of a limit of %d", n, 100<<10)
	}
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `seq -f %019.0f 100000`, func(s *sandbox.Spec) { s.MaxOutput = 50 << 10 }))
	<-p.Closed()
	o := p.Read(context.Background(), 0, 0, 0)
	if !o.Truncated || len(o.Chunks) == 0 || o.Chunks[0].Seq == 1 {
		t.Errorf("truncated %v, first %d", o.Truncated, o.Chunks[0].Seq)
	}
	for i, c := range o.Chunks {
		if c.Seq != o.Chunks[0].Seq+int64(i) {
			t.Fatalf("a hole before %d", c.Seq)
		}
	}
	if o := p.Read(context.Background(), o.Chunks[0].Seq, 0, 0); o.Truncated {
		t.Error("nothing was dropped after the first chunk that is kept")
	}
	if o := p.Read(context.Background(), o.NextSeq, 0, 0); len(o.Chunks) != 0 || o.NextSeq < 1 || !o.Closed || o.ExitCode == nil || *o.ExitCode != 0 {
		t.Errorf("after the end: %+v", o)
	}
	// Nobody reads at all, for both streams: it ends all the same.
	l.ws(`head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2`, func(s *sandbox.Spec) { s.MaxOutput = 1 << 10 }).ok(t)
}

// TestReadWaits: for output, for the exit, for the end; not longer than asked.
func TestReadWaits(t *testing.T) {
	l := newLab(t)
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `read x; echo "$x"; read y; exit 3`, func(s *sandbox.Spec) { s.Stdin = true }))
	ctx := context.Background()
	begin := time.Now()
	if o := p.Read(ctx, 0, 0, 30*time.Millisecond); len(o.Chunks) != 0 || o.Exited || o.NextSeq != 0 {
		t.Errorf("%+v", o)
	} else if d := time.Since(begin); d < 30*time.Millisecond {
		t.Errorf("waited %v only", d)
	}
	if o := p.Read(ctx, 0, 0, 0); len(o.Chunks) != 0 {
		t.Errorf("%+v", o)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if o := p.Read(cancelled, 0, 0, patience); len(o.Chunks) != 0 {
		t.Errorf("%+v", o)
	}
	answer := make(chan sandbox.Output, 1)
	go func() { answer <- p.Read(ctx, 0, 0, patience) }()
	if _, err := p.Write([]byte("hello\n"), ""); err != nil {
		t.Fatal(err)
	}
	o := <-answer
	if out, _ := collect(o.Chunks); out != "hello\n" || o.Exited {
		t.Errorf("%+v", o)
	}
	go func() { answer <- p.Read(ctx, o.NextSeq, 0, patience) }()
	if _, err := p.Write([]byte("bye\n"), ""); err != nil {
		t.Fatal(err)
	}
	if o := <-answer; !o.Exited || o.ExitCode == nil || *o.ExitCode != 3 || len(o.Chunks) != 0 {
		t.Errorf("%+v", o)
	}
}

// TestStdin: what is written arrives once, in order, and ends when it is closed.
func TestStdin(t *testing.T) {
	l := newLab(t)
	f := l.fence(fence.WorkspaceWrite)
	p := l.start(l.spec(f, "cat", func(s *sandbox.Spec) { s.Stdin = true }))
	for i, w := range []struct{ text, id string }{{"a", "1"}, {"b", "2"}, {"b", "2"}, {"other text, same id", "1"}, {"c", ""}, {"c", ""}, {"", "3"}} {
		if _, err := p.Write([]byte(w.text), w.id); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := errors.Join(p.CloseStdin(), p.CloseStdin()); err != nil {
		t.Fatal(err)
	}
	_, err := p.Write([]byte("late"), "4")
	wantCode(t, err, sandbox.CodeStdinClosed)
	if r := l.finish(p, time.Now()); r.stdout != "abcc" || r.code() != 0 {
		t.Errorf("%v", r)
	}
	// Without an input the command reads nothing.
	p = l.start(l.spec(f, "cat; echo end"))
	_, err = p.Write([]byte("x"), "")
	wantCode(t, err, sandbox.CodeStdinClosed)
	wantCode(t, p.CloseStdin(), sandbox.CodeStdinClosed)
	if r := l.finish(p, time.Now()); r.stdout != "end\n" {
		t.Errorf("%v", r)
	}
	// A large input, whole.
	p = l.start(l.spec(f, "sha256sum; sleep 0.05", func(s *sandbox.Spec) { s.Stdin = true }))
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	for range 16 {
		eventually(t, "there is room", func() bool {
			_, err := p.Write(big, "")
			if err != nil && !errors.Is(err, sandbox.ErrStdinFull) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	_ = p.CloseStdin()
	want := l.host("yes 0123456789abcdef | tr -d '\\n' | head -c 4194304 | sha256sum")
	if r := l.finish(p, time.Now()); r.stdout != want {
		t.Errorf("%v, want %s", r, want)
	}
}

// TestStdinFull: a command that does not read holds up nobody, and the id of a
// refused write is free for the repetition.
func TestStdinFull(t *testing.T) {
	l := newLab(t)
	if err := unix.Mkfifo(l.W+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `read -r go < fifo; wc -c`, func(s *sandbox.Spec) { s.Stdin = true }))
	chunk := make([]byte, 300<<10)
	total, full := 0, false
	for i := range 100 {
		id := fmt.Sprint("w", i)
		if _, err := p.Write(chunk, id); err == nil {
			total += len(chunk)
			continue
		} else if !errors.Is(err, sandbox.ErrStdinFull) {
			t.Fatal(err)
		}
		full = true
		fifo, err := os.OpenFile(l.W+"/fifo", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(fifo, "go")
		_ = fifo.Close()
		eventually(t, "the same write is accepted", func() bool { _, err := p.Write(chunk, id); return err == nil })
		total += len(chunk)
		break
	}
	if !full {
		t.Fatal("30 MB were queued")
	}
	_ = p.CloseStdin()
	if r := l.finish(p, time.Now()); strings.TrimSpace(r.stdout) != fmt.Sprint(total) {
		t.Errorf("%v, want %d", r, total)
	}
}

// TestExitedAndClosed: the command's end and the end of its streams are two
// events; somebody outside the tree who holds the pipe delays the second by 2
// seconds at most, and the command is not blamed.
func TestExitedAndClosed(t *testing.T) {
	l := newLab(t)
	rec := &recorder{}
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), `echo $$; read x; exit 7`, observed(rec), func(s *sandbox.Spec) { s.Stdin = true }))
	eventually(t, "it has started", func() bool { out, _ := outputOf(p); return strings.HasSuffix(out, "\n") })
	// An outsider opens the command's output.
	pipe, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", p.PID()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	begin := time.Now()
	_, _ = p.Write([]byte("\n"), "")
	<-p.Exited()
	exited := time.Since(begin)
	if st := p.State(); st.ExitCode == nil || *st.ExitCode != 7 {
		t.Errorf("%+v", st)
	}
	if o := p.Read(context.Background(), 0, 0, 0); !o.Exited || o.Closed {
		t.Errorf("%+v", o)
	}
	fmt.Fprintln(pipe, "late")
	<-p.Closed()
	closed := time.Since(begin)
	if exited > closed-time.Second || closed < 1900*time.Millisecond || closed > 20*time.Second {
		t.Errorf("exited after %v, closed after %v", exited, closed)
	}
	<-p.Over()
	if out, _ := outputOf(p); !strings.HasSuffix(out, "late\n") {
		t.Errorf("what came before the end is lost: %q", out)
	}
	eventually(t, "the observer is told", func() bool { return rec.count("closed") == 1 })
	if len(rec.closed.Survivors) != 0 || *rec.exited.ExitCode != 7 {
		t.Errorf("%+v", rec.closed)
	}
	// Without such a one it is closed at once.
	begin = time.Now()
	l.ws("sleep 100 & disown; echo x").ok(t)
	if d := time.Since(begin); d > 1900*time.Millisecond {
		t.Errorf("a background process with the pipe delayed the end by %v", d)
	}
}

// TestInherit: the caller's own files instead of pipes.
func TestInherit(t *testing.T) {
	l := newLab(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p := l.start(l.spec(l.fence(fence.WorkspaceWrite), "cat; echo out; echo err >&2", func(s *sandbox.Spec) { s.Inherit = &[3]*os.File{null, w, w} }))
	_ = w.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil || b.String() != "out\nerr\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if res := l.finish(p, time.Now()); res.code() != 0 || res.stdout+res.stderr != "" {
		t.Errorf("%v", res)
	}
}
