package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/provider"
)

// peakHeap gives how far the heap, garbage with it, rises above idle while do
// runs.
func peakHeap(do func()) uint64 {
	heap := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	runtime.GC()
	idle := heap()
	peak := idle
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			peak = max(peak, heap())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	do()
	close(done)
	wg.Wait()
	return peak - idle
}

// Memory does not grow with files and directories: 64 MiB above idle is the
// bound for all of this, a window of 8 GiB, a stream of 1 GiB, and a directory
// of 200,000 names by pages of 1,000.
func TestMemoryOfReads(t *testing.T) {
	const most = 64 << 20
	text := strings.Repeat("0123456789abcde\n", 4096) // 64 KiB
	for _, tt := range []struct {
		name string
		make func(p *place)
		do   func(p *place)
	}{
		{"window of a sparse file", func(p *place) {
			size := wholeOrTenth(8 << 30)
			if raceDetector {
				size /= 4 // still three times the bound
			}
			must(t, os.Truncate(p.put("f", text), size))
		}, func(p *place) {
			o, err := p.l.ReadLines(t.Context(), p.f, p.target("f"), provider.LineWindow{Offset: 4000})
			must(t, err)
			if o.TotalLines != 4097 || len(o.Lines) != 98 || !o.Lines[97].Cut {
				t.Errorf("%d lines, %d in all", len(o.Lines), o.TotalLines)
			}
		}},
		{"stream", func(p *place) {
			must(t, os.Truncate(p.put("f", text), wholeOrTenth(1<<30)))
		}, func(p *place) {
			s, err := p.l.StreamText(t.Context(), p.f, p.target("f"))
			must(t, err)
			defer s.Close()
			n := int64(0)
			for {
				piece, err := s.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				must(t, err)
				n += int64(len(piece))
			}
			if n != wholeOrTenth(1<<30) {
				t.Errorf("%d bytes", n)
			}
		}},
		{"range of a sparse file", func(p *place) {
			must(t, os.Truncate(p.put("f", text), 1<<40))
		}, func(p *place) {
			c, err := p.l.ReadByteRange(t.Context(), p.f, p.target("f"), provider.ByteRange{Offset: 1 << 39, Length: 1 << 20})
			if err != nil || len(c.Data) != 1<<20 {
				t.Errorf("%d bytes, %v", len(c.Data), err)
			}
		}},
		{"listing by pages", func(p *place) {
			for i := range wholeOrTenth(200_000) {
				h, err := os.Create(fmt.Sprintf("%s/a name of some length %d", p.W, i))
				must(t, err)
				h.Close()
			}
		}, func(p *place) {
			n, after := int64(0), ""
			for {
				es, err := p.l.ListDir(t.Context(), p.f, p.target("."), provider.ListOptions{After: after, Limit: 1000})
				must(t, err)
				n += int64(len(es))
				if len(es) < 1000 {
					break
				}
				after = es[999].Name
			}
			if n != wholeOrTenth(200_000) {
				t.Errorf("%d entries", n)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			tt.make(p)
			begin := time.Now()
			peak := peakHeap(func() { tt.do(p) })
			t.Logf("%v, %.1f MiB above idle", time.Since(begin).Round(time.Millisecond), float64(peak)/(1<<20))
			if peak > most {
				t.Errorf("%d bytes above idle", peak)
			}
		})
	}
}

// A window on a large file ends when its call is cancelled, and soon.
func TestCancelledWindow(t *testing.T) {
	p := newPlace(t, "", provider.Config{})
	must(t, os.Truncate(p.put("f", strings.Repeat("text\n", 20_000)), 1<<42))
	ctx, cancel := context.WithCancel(t.Context())
	p.once("opened", cancel)
	_, err := p.l.ReadLines(ctx, p.f, p.target("f"), provider.LineWindow{})
	code(t, err, provider.CodeAborted)
}
