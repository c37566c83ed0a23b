// Package client is the Go client of the daemon.
//
// # What it guarantees
//
//   - A call is sent once. Nothing is ever sent again on the client's own
//     account, and a connection that broke is not made anew: whether a call
//     that got no answer was carried out is for the caller to find out, by
//     asking for the state (facts/conventions section 10).
//   - Cancelling the context of a call tells the daemon and returns at once.
//   - Events come in order through a bounded queue. A subscriber that is too
//     slow gets a gap that says which ones it missed; it never holds up replies.
//   - [Files] has the methods of provider.Provider, for one session. A file call
//     that is cancelled waits for its answer, for its effect may have begun.
//     Streams are read by windows: they hold up nothing and are bounded.
//   - After [Client.Close] no goroutine is left.
//
// # What it does not do
//
// It checks nothing of what the daemon is told; the daemon is strict. It
// ignores members that it does not know, for the daemon may be newer.
package client
