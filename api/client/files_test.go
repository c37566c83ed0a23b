package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
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
