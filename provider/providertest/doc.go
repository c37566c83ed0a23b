// Package providertest is the acceptance suite of the file system contract: a
// table of operation × state of the disk → outcome, code, and the disk
// afterwards. It takes any implementation of provider.Provider that works on
// the host's own files, and uses real files, links, sockets and FIFOs.
//
// Every row compares the whole of a workspace and of a directory outside it
// before and after, so that a byte, a mode, a link or a name that should not
// have changed is seen, a forgotten temporary file as well.
//
// Run it as a normal user and as root: rows that only one of them can show are
// skipped for the other.
package providertest
