package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{})
	var e *api.Error
	if _, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{SessionID: "none"}); !errors.As(err, &e) || e.Code != -32014 {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil || sub.Start.Epoch != "e" {
		t.Fatal(sub, err)
	}
	if _, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{}); !errors.Is(err, client.ErrSubscribed) {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= 500; seq++ {
		publish(t, sc, seq, 10)
	}
	if events, gaps := follow(t, sub, 500); events != 500 || gaps != 0 {
		t.Fatal(events, gaps)
	}
	short, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sub.Next(short); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := sub.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(deadline(t)); !errors.Is(err, client.ErrUnsubscribed) {
		t.Fatal(err)
	}
	publish(t, sc, 501, 10) // to nobody
	if sub, err = c.Subscribe(deadline(t), api.EventsSubscribeParams{}); err != nil {
		t.Fatal(err)
	}
	publish(t, sc, 502, 10)
	if e, err := sub.Next(deadline(t)); err != nil || e.Seq < 501 {
		t.Fatal(e, err)
	}
}

// A subscriber that is slow holds nobody up and learns what it missed.
func TestSlowSubscriber(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{EventQueueBytes: 50_000})
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	const last = 2000
	for seq := int64(1); seq <= last; seq++ {
		publish(t, sc, seq, 1000)
		if seq%200 == 0 { // replies pass
			if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
				t.Fatal(err)
			}
		}
	}
	events, gaps := follow(t, sub, last)
	if events == 0 || gaps == 0 || events > 100 {
		t.Fatalf("%d events, %d gaps", events, gaps)
	}
}

// A gap of the daemon that is dropped here is part of the gap that is told.
func TestGapWithinAGap(t *testing.T) {
	w := newWorld(t)
	w.listen(t)
	c, sc := w.dial(t, client.Options{EventQueueBytes: 1})
	sub, err := c.Subscribe(deadline(t), api.EventsSubscribeParams{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, sc, 1, 10)
	g, err := api.EventGap.New("", "", api.GapData{From: 2, To: 50, Reason: api.GapEvicted})
	if err != nil {
		t.Fatal(err)
	}
	g.Epoch, g.Seq, g.Time = "e", 50, time.Now()
	n, err := api.EncodeEvent(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := sc.NotifyWait(deadline(t), n); err != nil {
		t.Fatal(err)
	}
	publish(t, sc, 51, 10)
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err)
	}
	follow(t, sub, 51)
}
