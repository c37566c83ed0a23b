package scratch

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// startTime is field 22 of /proc/PID/stat; 0 when there is no such process, or
// when it is only a zombie. The name in field 2 may hold anything, so fields
// are counted from its closing parenthesis.
func startTime(pid int) uint64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0
	}
	f := strings.Fields(string(b[i+1:])) // f[0] is field 3
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return 0
	}
	n, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// bootID is the kernel's random id of this boot, random(4).
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// pidNamespace names the namespace in which pids of this process count.
var pidNamespace = sync.OnceValue(func() string {
	s, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return s
})
