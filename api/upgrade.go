package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Subprotocol is what both sides may name in the handshake.
const Subprotocol = "wattle.v1"

// writeBuffers are shared: a connection that is silent holds none.
var writeBuffers sync.Pool

// Upgrade turns a request into a WebSocket connection as PROTOCOL section 1
// has it: no compression, whatever the client offers, and of the subprotocols
// it offers only wattle.v1 is ever answered.
//
// It does not look at who asks. Host, Origin, token and peer must have been
// checked before (facts/conventions section 9, rule 2). When it fails, the
// client has been answered.
func Upgrade(w http.ResponseWriter, r *http.Request) (Socket, error) {
	u := websocket.Upgrader{
		HandshakeTimeout:  5 * time.Second,
		ReadBufferSize:    4096,
		WriteBufferSize:   8192, // a reply of 4 KiB goes out in one write
		WriteBufferPool:   &writeBuffers,
		Subprotocols:      []string{Subprotocol},
		EnableCompression: false,
		// The library would compare Origin with Host, which proves nothing
		// (conventions section 9, precedents).
		CheckOrigin: func(*http.Request) bool { return true },
	}
	ws, err := u.Upgrade(w, r, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade connection: %w", err)
	}
	return NewSocket(ws), nil
}
