// Package fence is the policy of Wattle, as data and as a decision.
//
// It answers one question: may this path be reached in this way? Everything
// else asks it: the file provider before it touches the disk, the supervisor
// of a command before it lets a system call happen, the Landlock compiler
// when it turns the policy into kernel rules, and `wattle explain`. They all
// use one compiled object, a [Fence], so that no two of them can disagree.
//
// # What it guarantees
//
//   - [Fence.Check] is pure and total: no I/O, no state, an answer for every
//     string. A path that is not absolute and clean is refused.
//   - Of all entries that cover a path the most specific one decides; on a tie
//     hidden > protected > writable > readable (DESIGN section 2).
//   - A refusal is a [Denial]: it names the rule, where the rule comes from,
//     and the smallest grant that would help, or says that none is offered.
//   - What a kernel cannot enforce is listed in [Enforcement], never implied.
//
// # What it does not do
//
// It starts no process and writes nothing. The only I/O is looking: resolving
// paths ([Fence.Resolve]), listing the directories beside hidden ones for the
// Landlock compiler, and asking the kernel what it can enforce.
package fence
