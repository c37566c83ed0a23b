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
//   - Every event is numbered within this life of the daemon (its epoch). A
//     subscriber gets each event that it asked for once and in order, or one
//     gap that covers it. Publishers never wait for subscribers.
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
// Session.turning, Session.starts, Server.mu, Session.mu, Log.mu, in this order.
// The last three are never held while a command is started, a file is touched
// or a client is written to.
package daemon
