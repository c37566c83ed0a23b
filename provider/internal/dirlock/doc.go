// Package dirlock keeps several Wattle processes from replacing files in one
// directory in the same moment.
//
// Replacing a file exchanges two names, looks at what came out, and exchanges
// back when that is not what was expected. Foreign writers cannot upset that,
// but two processes that both exchange back could put a refused content over a
// published one. So the exchange, the look and the exchange back happen under
// an advisory lock of the directory, flock(2), which ends with its process.
//
// The lock is a courtesy among Wattle processes, not a wall: anybody who can
// read the directory can take it, and some programs hold such locks for long.
// [Lock] therefore waits only so long and then goes on without.
package dirlock
