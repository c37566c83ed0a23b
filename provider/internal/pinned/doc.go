// Package pinned holds one file by a handle that opens nothing: the file can be
// described, read, and have its metadata copied, and all of that is about the
// one inode that was pinned, whatever its name is by then.
//
// On Linux the handle is O_PATH (open(2)): pinning a FIFO releases no writer,
// pinning a device starts nothing, and reading goes through /proc/self/fd,
// which leads to the pinned inode and nowhere else. On other systems a regular
// file is opened for reading at once, after a look at its type; between look
// and open somebody can put another file there, which is noticed by identity.
package pinned
