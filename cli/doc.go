// Package cli is the command line of Wattle: one file a subcommand, each thin.
// It reads flags, asks a host in this process or the daemon, and prints.
//
// # Output
//
//   - Results go to stdout, everything for people beside them to stderr.
//   - Messages begin with "wattle: ", are lower case, have no full stop and
//     name the operation first. At most one hint line follows, with what to do
//     next.
//   - With --json a command prints one object, or one object a line where there
//     is a stream; names are those of the protocol. Failures are the protocol's
//     error object, on stdout too. `run` is the exception: stdout belongs to
//     its command, so that its objects go to stderr.
//   - Names of files and what commands call themselves may hold anything. In
//     text, what is not printable is escaped, so that nothing of it reaches a
//     terminal as a control sequence. File contents are printed as they are.
//   - Colour is used only for the log of `serve` on a terminal, and NO_COLOR
//     turns it off.
//
// # Exit status
//
// 0 done, 1 failed, 2 wrong usage, 69 no daemon, 77 refused by the fence. `run`
// gives the status of its command, 128+n when signal n ended it, 124 on
// --timeout, 125 when Wattle failed, 126 and 127 when the command cannot be
// executed or found (PROTOCOL section 3).
//
// # What it does not do
//
// It decides nothing about paths and touches no file for a user itself, but for
// the file of `run --report`.
package cli
