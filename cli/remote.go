package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
)

// remote is a connection to the daemon.
type remote struct {
	*client.Client
	hello api.InitializeResult
}

// socketFlag adds --socket.
func socketFlag(cmd *cobra.Command, p *string) {
	cmd.Flags().StringVar(p, "socket", "", "the daemon's socket at `PATH`, else WATTLE_SOCKET, else the usual place")
}

// dial connects to the daemon; close the connection in the end. The error wraps
// [client.ErrNoDaemon] when none runs.
func (w *world) dial(ctx context.Context, socket string) (*remote, error) {
	places, err := daemon.FindPlaces(w.getenv)
	if err != nil {
		return nil, err
	}
	if socket == "" && w.getenv("WATTLE_SOCKET") == "" && places.Runtime == "" {
		// There is no place where a daemon could listen.
		return nil, fmt.Errorf("connect to daemon: %w (XDG_RUNTIME_DIR is not set)", client.ErrNoDaemon)
	}
	path, err := places.Socket(socket, w.getenv)
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(ctx, path, client.Options{})
	if errors.Is(err, fs.ErrPermission) && w.fenced() {
		return nil, fmt.Errorf("connect to daemon at %s: %w", path, errFenced)
	}
	if err != nil {
		return nil, err
	}
	r := &remote{Client: c}
	if r.hello, err = c.Initialize(ctx, api.Implementation{Name: "wattle", Version: daemon.Version}); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect to daemon: %w", err)
	}
	return r, nil
}

// errFenced: the fence around this process keeps it from the daemon.
var errFenced = errors.New("a command in a fence cannot use the daemon")

// fenced tells whether this process says that it is a command in a fence. It is
// good for messages only: anybody can set the variable.
func (w *world) fenced() bool {
	m, err := fence.ParseMode(w.getenv(sandbox.EnvMode))
	return err == nil && m.Fenced()
}

// envelope is what JSON-RPC puts around parameters, generously.
const envelope = 1 << 10

// call makes one call. Parameters that fit into no message are refused here:
// the daemon would close the connection without a word about which file.
func call[P, R any](ctx context.Context, r *remote, m api.Method[P, R], p P) (R, error) {
	var none R
	raw, err := json.Marshal(p)
	if err != nil {
		return none, hinted(api.NewError(codeNotText, m.Name+": a name or text that is not UTF-8 cannot travel to the daemon"),
			"it can be used while no daemon runs")
	}
	if most := r.hello.Limits.MaxFrameBytes; int64(len(raw))+envelope > most {
		return none, api.NewError(codeTooLarge, fmt.Sprintf("%s: %d bytes do not fit into a message of the daemon (%d)", m.Name, len(raw), most), "limit", most)
	}
	return client.Do(ctx, r.Client, m, p)
}

// Codes of what is refused before it is sent.
const (
	codeTooLarge = string(provider.CodeTooLarge)
	codeNotText  = string(provider.CodeNotText)
)

// withDaemon connects for one use.
func (w *world) withDaemon(ctx context.Context, socket string, use func(*remote) error) error {
	r, err := w.dial(ctx, socket)
	if err != nil {
		return err
	}
	defer r.Close()
	return use(r)
}
