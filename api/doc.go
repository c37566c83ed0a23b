// Package api is the wire of Wattle: JSON-RPC 2.0 over WebSocket, one message
// or batch in one text frame (PROTOCOL section 1), the methods with their
// parameters and results, the errors and the events.
//
// # What it guarantees
//
//   - Strictness (facts/libraries section 3, facts/conventions section 9). What
//     a client sends is taken as it is written or refused with the member that
//     is wrong: names compare byte for byte, nothing is unknown, repeated,
//     missing or left over, text is valid UTF-8, nesting is limited. Ids are
//     echoed as they were spelled.
//   - No request, however malformed, ends more than its own connection, and
//     most do not end that. A handler that panics is answered with
//     INTERNAL_ERROR.
//   - Bounds. Per connection there is a limit to the size of a frame, to the
//     calls that run and the bytes of their parameters, to the replies and to
//     the events that wait to be written. With the defaults the queue holds at
//     most 64 MiB of replies and 4 MiB of events; a reply for which there is no
//     room waits with its call, whose slot stays taken.
//   - A reply is never dropped while the connection lives. An event is
//     delivered once and in order, or it is named by a gap. A reader that does
//     not read blocks nobody: publishers never wait, and after the write
//     timeout, or when even refusals pile up, its connection is closed.
//   - Calls of a connection run at once and are answered in any order.
//     `initialize` alone comes before everything.
//
// # What it does not do
//
// It does not know what a method does, and it orders no calls: calls on one
// target file are ordered by the provider. It does not look at who connects:
// that is checked before [Upgrade].
//
// Types that have a home elsewhere ([fence.Denial], [provider.Target],
// [sandbox.State] …) travel as they are defined there.
package api
