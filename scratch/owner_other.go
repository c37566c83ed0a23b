//go:build !linux

package scratch

// Without /proc a process cannot be told from a later one with its number:
// only the lock says whether an owner lives.

func startTime(int) uint64 { return 0 }

func bootID() string { return "" }

func pidNamespace() string { return "" }
