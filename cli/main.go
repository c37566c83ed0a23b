package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit status. It is called once,
// from package main.
func Main(args []string) int {
	w := &world{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	root := newRoot(w)
	root.SetArgs(args)
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return 0
	}
	var s exitStatus
	if errors.As(err, &s) {
		return int(s)
	}
	isRun := cmd.Name() == nameRun && cmd.Parent() == root
	var f *failed
	if !errors.As(err, &f) {
		// What cobra says comes before any command of ours runs.
		f = &failed{err: &usageError{cmd: cmd, err: err}}
	}
	w.complain(f, isRun, asksJSON(cmd, args, f))
	return f.status(isRun)
}

// world is the process as the commands see it.
type world struct {
	stdin, stdout, stderr *os.File
	getenv                func(string) string
}

// exitStatus ends the program with a status and no further message.
type exitStatus int

func (exitStatus) Error() string { return "exit" }

// nameRun is the one command whose failures have statuses of their own.
const nameRun = "run"

// asksJSON tells whether failures are to be told as JSON. After an error in the
// flags they may not have been read, and --json is looked for by hand.
func asksJSON(cmd *cobra.Command, args []string, f *failed) bool {
	j, err := cmd.Flags().GetBool("json")
	if err != nil {
		return false // it has no such flag
	}
	var u *usageError
	if j || !errors.As(f, &u) {
		return j
	}
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}
