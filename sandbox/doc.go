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
// # Threads
//
// A start locks one fresh operating system thread, restricts it for ever,
// starts the command from it and leaves it parked until the tree is over: it is
// the kill switch. The process's first thread is never restricted. One further
// locked thread serves the supervisor of that tree.
package sandbox
