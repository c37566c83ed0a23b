package client_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
)

// A client that has nothing to say stays: it answers pings.
func TestSilentClientStays(t *testing.T) {
	w := newWorld(t)
	w.opt = quickPings
	w.listen(t)
	c, sc := w.dial(t, client.Options{})
	select {
	case <-c.Done():
		t.Fatal(c.Err())
	case <-sc.Done():
		t.Fatal(sc.Err())
	case <-time.After(3 * quickPings.ReadTimeout): // nothing is to happen for so long
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); err != nil {
		t.Fatal(err)
	}
}

// A daemon that has stopped answering is noticed.
func TestSilentDaemon(t *testing.T) {
	w := newWorld(t)
	w.opt = api.Options{PingInterval: time.Hour}
	w.listen(t)
	c, _ := w.dial(t, client.Options{Silence: 200 * time.Millisecond})
	_, err := client.Do(deadline(t), c, api.SessionClose, api.SessionRef{SessionID: "s"})
	var ce *api.CloseError
	if !errors.As(err, &ce) || ce.Code != api.CloseAbnormal {
		t.Fatal(err)
	}
}

// One that does not read is noticed while sending.
func TestDaemonThatDoesNotRead(t *testing.T) {
	dir, err := os.MkdirTemp("", "wattle")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	up := make(chan api.Socket, 1)
	hs := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if sock, err := api.Upgrade(rw, r); err == nil {
			up <- sock // and nobody ever reads from it
		}
	})}
	var wg sync.WaitGroup
	wg.Go(func() { hs.Serve(l) })
	defer wg.Wait()
	defer hs.Close()
	c, err := client.Dial(deadline(t), filepath.Join(dir, "s"), client.Options{WriteTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer (<-up).Close()
	var ce *api.CloseError
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams(strings.Repeat("x", 8<<20))); !errors.As(err, &ce) {
		t.Fatal(err)
	}
	if _, err := client.Do(deadline(t), c, api.FSReadText, readParams("p")); !errors.As(err, &ce) {
		t.Fatal(err)
	}
}

// A peer that speaks no JSON-RPC ends the connection, not the program.
func TestNonsenseFromTheDaemon(t *testing.T) {
	for _, text := range []string{`nonsense`, `[]`, `{"jsonrpc":"2.0","id":"x","result":1}`, `{"jsonrpc":"2.0","method":"event","params":{"seq":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"id":1,"result":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`} {
		up := make(chan api.Socket, 1)
		dir, err := os.MkdirTemp("", "wattle")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		hs := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if sock, err := api.Upgrade(rw, r); err == nil {
				up <- sock
			}
		})}
		var wg sync.WaitGroup
		wg.Go(func() { hs.Serve(l) })
		c, err := client.Dial(deadline(t), filepath.Join(dir, "s"), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sock := <-up
		// What is only unknown is ignored: the daemon may be newer.
		for _, ok := range []string{`{"jsonrpc":"2.0","method":"news","params":{}}`, `{"jsonrpc":"2.0","id":99,"result":1,"more":2}`} {
			if err := sock.WriteFrame([]byte(ok), time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
		}
		if err := sock.WriteFrame([]byte(text), time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		if c.Err() == nil {
			t.Errorf("%s was taken", text)
		}
		c.Close()
		sock.Close()
		hs.Close()
		wg.Wait()
		os.RemoveAll(dir)
	}
}
