// Package daemon is the long-running process and everything that a session
// consists of: which client may connect, what a session owns, when its turns,
// commands and scratch end, and the log of events.
//
// # What it guarantees
//
//   - A session belongs to the connection that opened or resumed it. Calls of
//     other connections on its files, commands and scratch are refused.
//   - A session whose client is gone keeps working for its time to live and can
//     be resumed with its token. When it ends, its commands are ended and its
//     scratch is cleaned, whatever the reason.
//   - Every event is numbered within this life of the daemon (its epoch), but
//     for those of a stream, which one call has asked for. A subscriber gets
//     each event that it asked for once and in order, or one gap that covers
//     it. Publishers never wait for subscribers.
//   - A stream of text belongs to the connection that asked for it, a watch to
//     its session. Neither grows in memory when nobody reads.
//   - A command in a fence cannot reach the daemon: its supervisor refuses the
//     connection, and the socket refuses whoever descends from a command.
//
// # What it does not do
//
// It decides nothing about paths (package fence does) and touches no file for a
// client itself (provider, scratch and sandbox do).
//
// # Locks
//
// Session.turning, Session.starts, Server.mu, watch.mu, Session.mu, Log.mu, in
// this order. Server.mu, Session.mu and Log.mu are never held while a command is
// started, a file is touched or a client is written to.
package daemon
