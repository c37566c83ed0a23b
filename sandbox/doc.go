// Package sandbox runs commands inside a fence.
//
// # What it guarantees
//
//   - A fenced command starts only on a thread that the kernel has restricted
//     before; where the kernel cannot do that, the start fails with
//     SANDBOX_UNAVAILABLE, unless the policy asks for best effort, and then the
//     [fence.Enforcement] of the start says what is not held.
//   - A refusal by the fence is told apart from every other failure: it is in
//     [State].Denials, by path, access and system call, and nothing else is.
//   - A command is over when its whole tree is over: whatever it left running
//     is ended (or listed, if it was to be kept), also after setsid, double
//     forks and ignored signals.
//   - A command's output never blocks it and never grows without bound: the
//     oldest is dropped and the loss is marked.
//
// # What it does not do
//
// It decides nothing: what is allowed is asked of a [fence.Fence]. It does not
// see reads, and under protect "checked" a command that rewrites a path in its
// memory between check and call can reach a protected path; the report of each
// start says so.
//
// # Checked and strict
//
// Under protect "checked" the supervisor looks at a call and lets it go on.
// Under "strict" it makes the call itself, on the handles that it looked at,
// and answers with what came of it; descriptors are handed over. Then nothing
// that a second thread changes meanwhile counts. What differs for commands:
//
//   - Landlock cannot be had by programs inside, which are told that there is
//     none: the rules that a program gave itself would not hold the supervisor.
//   - A terminal does not become the controlling one by being opened; TIOCSCTTY
//     makes it so. A FIFO that is opened with O_CREAT for reading does not wait
//     for its writer.
//   - A signal with a handler does not interrupt an open that waits for the
//     reader of a FIFO, or for a lease; a deadly one does.
//   - What lies in another mount namespace cannot be changed.
//   - Where an open fails for want of a descriptor (EMFILE), a file that it was
//     to make has been made.
//   - The size limit (RLIMIT_FSIZE) of truncate is kept, but SIGXFSZ is not sent.
//
// A policy that asks for strict is refused a start where it cannot be had
// (before Linux 5.19, and below another supervisor), unless it takes best effort.
//
// # Threads
//
// A start locks one fresh operating system thread, restricts it for ever,
// starts the command from it and leaves it parked until the tree is over: it is
// the kill switch. The process's first thread is never restricted. One further
// locked thread serves the supervisor of that tree; under "strict" that one gives
// up its capabilities for good and has a umask of its own.
package sandbox
