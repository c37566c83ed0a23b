package client_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/trash/record"
)

var at = provider.Target{TargetKey: "/w/f", DisplayPath: "/w/f"}

// A file call that is cancelled reports what has happened: publication that has
// begun is not undone.
func TestCancelledFileCallTellsWhatHappened(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{}, 1)
	api.On(w.mux, api.FSEditText, func(ctx context.Context, _ *api.Request, p *api.FSEditTextParams) (provider.EditOutcome, error) {
		begun <- struct{}{}
		<-ctx.Done()
		if p.Edit.OldString == "late" {
			return provider.EditOutcome{Version: "v2"}, nil
		}
		return provider.EditOutcome{}, &provider.Error{Code: provider.CodeAborted, Op: "editText", Path: p.Target.DisplayPath, Cause: ctx.Err()}
	})
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	files := client.NewFiles(c, "s")
	edit := func(ctx context.Context, old string) (provider.EditOutcome, error) {
		return files.EditText(ctx, at, provider.EditRequest{OldString: old}, provider.EditOptions{})
	}
	for old, code := range map[string]provider.Code{"late": "", "early": provider.CodeAborted} {
		ctx, cancel := context.WithCancel(deadline(t))
		go func() { <-begun; cancel() }()
		out, err := edit(ctx, old)
		if provider.CodeOf(err) != code || (err == nil) != (code == "") || (out.Version == "v2") != (code == "") {
			t.Errorf("%s: %+v, %v", old, out, err)
		}
		if code != "" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", old, err)
		}
	}
	// Cancelled before: nothing is sent.
	ctx, cancel := context.WithCancel(deadline(t))
	cancel()
	if _, err := edit(ctx, "early"); provider.CodeOf(err) != provider.CodeAborted || len(begun) > 0 {
		t.Errorf("%v", err)
	}
	// The daemon dies: nobody waits for ever.
	go func() { <-begun; w.stop() }()
	ctx, cancel = context.WithCancel(deadline(t))
	defer cancel()
	if _, err := edit(ctx, "late"); err != nil && provider.CodeOf(err) != provider.CodeIOError {
		t.Errorf("%v", err)
	}
}

// What cannot travel is refused before it is sent, with a code, and the
// connection stays.
func TestFilesThatCannotTravel(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	files := client.NewFiles(c, "s")
	for content, code := range map[string]provider.Code{
		strings.Repeat("x", 17<<20): provider.CodeTooLarge, "\xff": provider.CodeNotText, "x": provider.CodeSandboxDenied,
	} {
		_, err := files.WriteText(deadline(t), at, content, provider.WriteOptions{})
		if provider.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", len(content), err)
		}
	}
	if n := w.writes.Load(); n != 1 {
		t.Errorf("%d of three were sent", n)
	}
	_, err := files.WriteText(deadline(t), at, "x", provider.WriteOptions{})
	var d *fence.Denial
	if !errors.As(err, &d) || d.Path != "/etc/x" {
		t.Errorf("%v", err)
	}
}

// An error comes back as it was, with all that it knows.
func TestFileErrorsComeBack(t *testing.T) {
	entry := &record.Entry{ID: "T", TrashDir: "/t", Name: "f", Type: "file", State: record.OK}
	misfit := &patch.Failure{HunkLineNumber: 3, Stage: patch.StageOldLines, Pattern: []string{"a"}}
	denial := &fence.Denial{Code: fence.CodeSandboxDenied, Path: "/real/f", Access: fence.Delete, Mode: fence.ReadOnly, Rule: fence.RuleReadOnly,
		Hint: "ask", WritableRoots: []string{}, Verdict: fence.VerdictFence, Evidence: fence.EvidenceDecision}
	for _, want := range []*provider.Error{
		{Code: provider.CodeNotFound, Op: "deleteFile", Path: "/w/f"},
		{Code: provider.CodeNotFound, Op: "deleteFile", Path: "/w/f", Detail: "a: b"},
		{Code: provider.CodePermissionDenied, Op: "deleteFile", Path: "/w/f", Detail: "d", Errno: "EACCES", Syscall: "unlinkat", Cause: syscall.EACCES},
		{Code: provider.CodeSandboxDenied, Op: "deleteFile", Path: "/w/shown", Detail: "d", Outcome: record.Rejected, Reason: record.ReasonProtected, Cause: denial},
		{Code: provider.CodePatchMismatch, Op: "moveFile", Path: "/w/f", Cause: misfit},
		{Code: record.CodeUnknown, Op: "deleteFile", Path: "/w/f", Outcome: record.Unknown, Reason: record.ReasonOperationUnknown, Errno: "EIO", Syscall: "fsync",
			Cause: &record.Error{Code: record.CodeUnknown, Outcome: record.Unknown, Op: "put /w/f", Detail: "d", Entry: entry, Cause: syscall.EIO}},
	} {
		w := newWorld(t)
		api.On(w.mux, api.FSDeleteFile, func(context.Context, *api.Request, *api.FSDeleteFileParams) (provider.DeleteOutcome, error) {
			return provider.DeleteOutcome{}, want
		})
		w.listen(t)
		c, _ := w.dial(t, client.Options{})
		_, err := client.NewFiles(c, "s").DeleteFile(deadline(t), at, provider.DeleteOptions{})
		var got *provider.Error
		if !errors.As(err, &got) {
			t.Fatal(err)
		}
		if got.Code != want.Code || got.Op != want.Op || got.Path != want.Path || got.Errno != want.Errno || got.Syscall != want.Syscall ||
			got.Outcome != want.Outcome || got.Reason != want.Reason {
			t.Errorf("%+v came back as %+v", want, got)
		}
		if err.Error() != want.Error() {
			t.Errorf("%q came back as %q", want, err)
		}
		var d *fence.Denial
		var h *patch.Failure
		var e *record.Error
		if errors.As(want, &d) && (!errors.As(err, &d) || !reflect.DeepEqual(d, denial)) ||
			errors.As(want, &h) && (!errors.As(err, &h) || !reflect.DeepEqual(h, misfit)) ||
			errors.As(want, &e) && (!errors.As(err, &e) || !reflect.DeepEqual(e.Entry, entry)) ||
			want.Errno != "" && !errors.Is(err, want.Cause) && e == nil || e != nil && !errors.Is(err, syscall.EIO) {
			t.Errorf("%v lost its cause: %#v", want, got.Cause)
		}
		_ = c.Close()
		w.stop()
	}
}

// The chunks of a stream come in order or the stream fails; what came before
// its end is given first.
func TestStreamOfAClient(t *testing.T) {
	w := newWorld(t)
	var send func(*api.Conn)
	api.On(w.mux, api.FSStreamText, func(_ context.Context, r *api.Request, p *api.FSStreamTextParams) (api.FSStreamTextResult, error) {
		if p.StreamID == "" {
			r.AfterReply(func() { go send(r.Conn) })
		}
		return api.FSStreamTextResult{StreamID: "i", Version: "v1"}, nil
	})
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	files := client.NewFiles(c, "s")
	for _, tt := range []struct {
		name string
		seqs []int64
		end  *api.Error
		text string
		code provider.Code
	}{
		{"whole", []int64{1, 2, 3}, nil, "xxx", ""},
		{"empty", nil, nil, "", ""},
		{"an error behind the text", []int64{1, 2}, api.NewError("FS_NOT_TEXT", "m"), "xx", provider.CodeNotText},
		{"a chunk is missing", []int64{1, 3}, nil, "", provider.CodeIOError},
	} {
		sent := make(chan struct{})
		send = func(conn *api.Conn) {
			defer close(sent)
			for _, seq := range tt.seqs {
				unnumbered(t, conn, api.EventFSChunk, api.FSChunkData{StreamID: "i", Seq: seq, Text: "x"})
			}
			unnumbered(t, conn, api.EventFSStreamEnd, api.FSStreamEndData{StreamID: "i", Version: "v2", Error: tt.end})
		}
		s, err := files.StreamText(deadline(t), at)
		if err != nil {
			t.Fatal(err)
		}
		<-sent
		if _, err := files.ReadText(deadline(t), at, provider.ReadOptions{}); err != nil { // everything before it has come
			t.Fatal(err)
		}
		var text strings.Builder
		for err == nil {
			var piece string
			piece, err = s.Next()
			text.WriteString(piece)
		}
		if text.String() != tt.text || provider.CodeOf(err) != tt.code {
			t.Errorf("%s: %q, %v", tt.name, text.String(), err)
		}
		if tt.code == "" && s.Version() != "v2" {
			t.Errorf("%s: version %q", tt.name, s.Version())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func unnumbered[D any](t *testing.T, c *api.Conn, typ api.EventType[D], data D) {
	e, err := typ.New("s", "", data)
	if err != nil {
		t.Error(err)
		return
	}
	e.Epoch, e.Time = "e", time.Now()
	n, err := api.EncodeUnnumbered(e)
	if err != nil {
		t.Error(err)
		return
	}
	if err := c.NotifyWait(context.Background(), n); err != nil {
		t.Error(err)
	}
}
