// Command wattle runs beside a desktop agent and gives it a fence, files that nothing
// can tear or lose, and a place for scratch. See package cli for the command.
package main

import (
	"os"
	"runtime"

	"github.com/wattle-dev/wattle/cli"
)

// The main goroutine keeps the process's first thread. A command is started
// from a thread that is restricted for good and then dies; the first thread
// never dies, so it must never be taken for that (facts/supervisor section 1).
func init() { runtime.LockOSThread() }

func main() { os.Exit(cli.Main(os.Args[1:])) }
