package cli

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/api/client"
	"github.com/wattle-dev/wattle/daemon"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/trash/record"
)

// Exit statuses (PROTOCOL section 3).
const (
	statusFailed   = 1
	statusUsage    = 2
	statusNoDaemon = 69
	statusDenied   = 77

	// Of run alone.
	statusTimeout  = 124
	statusOwn      = 125
	statusCannot   = 126
	statusNotFound = 127
	statusSignal   = 128 // and the number of the signal
)

// failed is how every command of ours fails.
type failed struct {
	err  error
	hint string // instead of the usual one
	code int    // exit status instead of the usual one
}

func (f *failed) Error() string { return f.err.Error() }
func (f *failed) Unwrap() error { return f.err }

// wrap marks an error as ours; nil and exit statuses stay what they are.
func wrap(err error) error {
	var s exitStatus
	var f *failed
	if err == nil || errors.As(err, &s) || errors.As(err, &f) {
		return err
	}
	return &failed{err: err}
}

// hinted adds a hint of the place where the error is understood best.
func hinted(err error, hint string) error { return &failed{err: err, hint: hint} }

// usageError: the command line itself is wrong.
type usageError struct {
	cmd *cobra.Command
	err error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, format string, a ...any) error {
	return &failed{err: &usageError{cmd: cmd, err: fmt.Errorf(format, a...)}}
}

// codeNoDaemon and codeUsage are stable codes of this command alone: such
// failures never travel.
const (
	codeNoDaemon = "DAEMON_UNREACHABLE"
	codeUsage    = "USAGE"
)

// wire is the error as --json shows it: that of the daemon, or what it would
// have said.
func wire(err error) *api.Error {
	own := func(code string) *api.Error {
		e := api.NewError(api.CodeInternal, err.Error())
		e.Data = []byte(`{"code":"` + code + `"}`)
		return e
	}
	var u *usageError
	var refused *client.RefusedError
	switch {
	case errors.As(err, &u):
		return own(codeUsage)
	case errors.As(err, new(*daemon.ConfigError)):
		return own(daemon.CodeConfig)
	case errors.Is(err, client.ErrNoDaemon), errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable:
		return own(codeNoDaemon)
	}
	e := api.ErrorOf(err)
	if e.Stable() == api.CodeInternal {
		var remote *api.Error
		if !errors.As(err, &remote) {
			e.Message = err.Error() // it is the user's own machine
		}
	}
	return e
}

// decodeData reads what an error carries; what cannot be read is not known.
func decodeData(e *api.Error, into any) { _ = json.Unmarshal(e.Data, into) }

// status is the exit status that goes with a failure.
func (f *failed) status(isRun bool) int {
	if f.code != 0 {
		return f.code
	}
	code := wire(f.err).Stable()
	if isRun {
		switch code {
		case sandbox.CodeCommandNotFound:
			return statusNotFound
		case sandbox.CodeStartFailed:
			return statusCannot
		}
		return statusOwn
	}
	var refused *client.RefusedError
	switch {
	case code == codeUsage:
		return statusUsage
	case code == codeNoDaemon:
		return statusNoDaemon
	case code == fence.CodeSandboxDenied, errors.Is(f.err, errFenced), errors.As(f.err, &refused) && refused.Status == http.StatusForbidden:
		return statusDenied
	}
	return statusFailed
}

// text is the failure in one line, or in several for a policy file whose place
// can be shown.
func (f *failed) text() string {
	var pol *policies.Error
	if errors.As(f.err, &pol) {
		return printableLines(pol.Code + ": " + pol.Detail())
	}
	var conf *daemon.ConfigError
	if errors.As(f.err, &conf) {
		return printableLines(conf.Detail())
	}
	e := wire(f.err)
	switch e.Stable() {
	case codeUsage, codeNoDaemon, api.CodeInternal:
		return printable(e.Message)
	}
	return printable(e.Stable() + ": " + e.Message)
}

// hints are what to do next, by stable code. What needs more than the code is
// in hintText.
var hints = map[string]string{
	codeNoDaemon:                          "start it with wattle serve",
	daemon.CodeConfig:                     "wattle config show prints what there is to set",
	record.CodeNotFound:                   "list the trash with wattle trash list --all",
	record.CodeBroken:                     "name a place with --to",
	api.CodeSessionWorkspace:              "name a directory with --workspace",
	api.CodeSessionNotFound:               "list the sessions with wattle session list",
	fence.CodePolicyRootRefused:           "name a project directory with --workspace, or use --mode read-only",
	policies.CodeNotFound:                 "list the policies with wattle policy list",
	sandbox.CodeUnavailable:               "wattle version tells what this kernel has; --mode full-access runs without a fence",
	string(provider.CodePermissionDenied): "these are the ordinary permissions of the file; no mode changes them",
	string(provider.CodeStaleVersion):     "the file changed meanwhile; read it again and use the new version",
	string(provider.CodeNotObserved):      "to replace the file name its version with --if-version",
	string(provider.CodeAmbiguousEdit):    "give more of the text around it, or replace all with --all",
	string(provider.CodeEditNotFound):     "the text must be there letter for letter; see wattle fs read",
	string(provider.CodeNotDirectory):     "read it with wattle fs read",
	string(provider.CodeNotRegularFile):   "see what it is with wattle fs stat",
	"SESSION_NOT_HELD":                    "take the session over with --session and --token",
	policies.CodeRefused:                  "move the file to a place that only you can write",
	"SCRATCH_READ_ONLY":                   "open the session in workspace-write",
	fence.CodePolicyInvalid:               "check the file with wattle policy check FILE",
	string(provider.CodeNotText):          "only UTF-8 text can be read and written here",
	api.CodeProcessNotFound:               "list the commands with wattle ps",
	api.CodeSessionToken:                  "the token is in the reply that opened the session",
}

// hintText is the one line that says what to do, or "".
func (f *failed) hintText() string {
	if f.hint != "" {
		return f.hint
	}
	var u *usageError
	var refused *client.RefusedError
	switch {
	case errors.As(f.err, &u):
		return "see " + u.cmd.CommandPath() + " --help"
	case errors.Is(f.err, daemon.ErrRunning):
		return "see wattle status, or name another socket with --socket"
	case errors.As(f.err, &refused) && refused.Status == http.StatusServiceUnavailable:
		return "try again in a moment, or see its log"
	case errors.As(f.err, &refused) && refused.Status == http.StatusForbidden:
		return "a command in a fence and another user cannot use the daemon"
	}
	return hints[wire(f.err).Stable()]
}

// errorLine is a failure of run as JSON.
type errorLine struct {
	Type string `json:"type"` // "error"
	api.Error
}

// complain tells a failure.
func (w *world) complain(f *failed, isRun, asJSON bool) {
	switch {
	case asJSON && isRun:
		w.jsonLine(w.stderr, errorLine{"error", *wire(f.err)})
	case asJSON:
		w.jsonLine(w.stdout, wire(f.err))
	default:
		w.say("%s", f.text())
		if h := f.hintText(); h != "" {
			w.say("hint: %s", h)
		}
	}
}
