package daemon

import (
	"errors"
	"net"
	"os"
)

var errNoListener = errors.New("the control socket needs a system with unix permissions")

func privateDir(string) error                      { return errNoListener }
func lockFile(string) (*os.File, error)            { return nil, errNoListener }
func listenPrivately(string) (net.Listener, error) { return nil, errNoListener }
