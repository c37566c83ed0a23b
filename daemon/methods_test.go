package daemon_test

import (
	"testing"

	"github.com/wattle-dev/wattle/daemon"
)

// Every method of the protocol's table is served.
func TestEveryMethodIsServed(t *testing.T) {
	if m := daemon.NewServer(nil, daemon.NewLog(0, 0), daemon.ServerOptions{}).Missing(); len(m) > 0 {
		t.Errorf("not served: %v", m)
	}
}
