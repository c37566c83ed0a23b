// Package dirwatch tells of changes in directories, any number of them through
// one queue of the system's.
//
// On Linux the queue is one inotify instance, of which a user may have 128
// (fs.inotify.max_user_instances), and a directory is watched by its handle:
// what is watched is the directory that was checked, wherever a path leads by
// then. Other systems are asked through fsnotify, by path; that half knows
// less, and says so at [OpenByPath].
//
// Events are hints. They say that something may be another one than before,
// not what it is now, and the kernel may merge equal ones that follow each
// other. What the kernel does not tell: changes by other machines, writes
// through a mapping of the file (only the end of the writing process's handle),
// writes through a name in another directory.
package dirwatch
