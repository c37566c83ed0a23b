package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/fence"
)

func TestCalls(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	ctx := deadline(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			for range 20 {
				want := fmt.Sprint("p", i)
				if r, err := client.Do(ctx, c, api.FSReadText, readParams(want)); err != nil || r.Text != want {
					t.Error(r, err)
				}
			}
		})
	}
	wg.Wait()
	if r, err := client.Do(ctx, c, api.FSStat, api.FileRef{SessionID: "s", Path: "p"}); err != nil || r != nil {
		t.Fatal(r, err)
	}
	// Large both ways.
	big := strings.Repeat("é", 7<<20)
	if r, err := client.Do(ctx, c, api.FSReadText, readParams(big)); err != nil || r.Text != big {
		t.Fatal(len(r.Text), err)
	}
	if err := c.Call(ctx, "fs/stat", map[string]any{"sessionId": "s", "path": "p"}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestErrors(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	ctx := deadline(t)
	_, err := client.Do(ctx, c, api.FSWriteText, api.FSWriteTextParams{FileRef: api.FileRef{SessionID: "s", Path: "/etc/x"}})
	var e *api.Error
	if !errors.As(err, &e) || e.Code != -32010 || e.Stable() != fence.CodeSandboxDenied {
		t.Fatal(err)
	}
	if d := e.Denial(); d == nil || d.Path != "/etc/x" || d.Rule != fence.RuleOutside || d.Access != fence.Create {
		t.Fatalf("%+v", d)
	}
	err = c.Call(ctx, "fs/nothing", nil, nil)
	if !errors.Is(err, api.NewError(api.CodeMethodNotFound, "")) {
		t.Fatal(err)
	}
	err = c.Call(ctx, "fs/stat", map[string]any{"x": 1}, nil)
	if !errors.As(err, &e) || e.Stable() != api.CodeInvalidParams || e.Denial() != nil {
		t.Fatal(err)
	}
	if err := c.Call(ctx, "fs/stat", func() {}, nil); err == nil {
		t.Fatal("a function was sent")
	}
	// A path that is no UTF-8 would arrive as another one.
	if _, err := client.Do(ctx, c, api.FSReadText, readParams("\xff")); err == nil {
		t.Fatal("bytes that are no text were sent")
	}
	var wrong struct {
		Text int `json:"text"`
	}
	if err := c.Call(ctx, "fs/readText", readParams("p"), &wrong); err == nil {
		t.Fatal("a string became a number")
	}
	if _, err := client.Do(ctx, c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err) // none of that hurt the connection
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	const calls = 32
	errs := make(chan error, calls)
	ctx, cancel := context.WithCancel(deadline(t))
	for range calls {
		go func() {
			_, err := client.Do(ctx, c, api.SessionClose, api.SessionRef{SessionID: "s"})
			errs <- err
		}()
	}
	for range calls {
		<-w.waiting
	}
	cancel()
	for range calls {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := <-w.causes; !errors.Is(err, api.ErrCancelled) {
			t.Fatal(err)
		}
	}
	if _, err := client.Do(ctx, c, api.FSWriteText, api.FSWriteTextParams{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err)
	}
	if n := w.writes.Load(); n != 0 {
		t.Fatalf("a call whose context was over was sent %d times", n)
	}
}

func TestTheDaemonGoes(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, _ := w.dial(t, client.Options{})
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	go func() {
		_, err := client.Do(deadline(t), c, api.SessionClose, api.SessionRef{SessionID: "s"})
		errs <- err
	}()
	<-w.waiting
	w.stop()
	// The call is told that it was cancelled, or that the connection is over.
	var e *api.Error
	var ce *api.CloseError
	if err := <-errs; !errors.As(err, &e) && !errors.As(err, &ce) {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); !errors.As(err, &ce) || ce.Code != api.CloseGoingAway || ce.Local {
		t.Fatal(err)
	}
	if _, err := sub.Next(deadline(t)); !errors.As(err, &ce) {
		t.Fatal(err)
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); !errors.As(err, &ce) {
		t.Fatal(err)
	}
	if _, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{}); !errors.As(err, &ce) {
		t.Fatal(err)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{})
	errs := make(chan error, 1)
	go func() {
		_, err := client.Do(deadline(t), c, api.SessionClose, api.SessionRef{SessionID: "s"})
		errs <- err
	}()
	<-w.waiting
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { c.Close() })
	}
	wg.Wait()
	if err := <-errs; !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
	if err := <-w.causes; !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
	<-sc.Done()
	var ce *api.CloseError
	if err := sc.Err(); !errors.As(err, &ce) || ce.Code != api.CloseNormal {
		t.Fatal(err)
	}
	if err := c.Call(deadline(t), "fs/stat", nil, nil); !errors.Is(err, api.ErrClosed) {
		t.Fatal(err)
	}
}
