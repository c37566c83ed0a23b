package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

var toolOnce struct {
	sync.Once
	path string
}

// toolPath is this test binary under a path that fenced commands can execute.
func toolPath() string {
	toolOnce.Do(func() { toolOnce.path, _ = filepath.EvalSymlinks("/proc/self/exe") })
	return toolOnce.path
}

// tool is a small program that fenced commands run, where no usual program
// does what a test needs. It returns the exit status.
func tool(name string, args []string) int {
	f, ok := tools[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such tool:", name)
		return 2
	}
	if err := f(args); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		return 1
	}
	return 0
}

var tools = map[string]func([]string) error{}
