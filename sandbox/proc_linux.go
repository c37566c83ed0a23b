package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// procFile reads a small file of /proc/PID.
func procFile(pid int, name string) []byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil
	}
	return b
}

// threadGroup is the process id of a thread, or the thread id itself when it
// is gone.
func threadGroup(tid int) int {
	_, rest, ok := bytes.Cut(procFile(tid, "status"), []byte("\nTgid:\t"))
	if !ok {
		return tid
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if n, err := strconv.Atoi(string(line)); err == nil {
		return n
	}
	return tid
}

// processName is the short name of a process (proc_pid_comm(5)).
func processName(pid int) string { return strings.TrimSpace(string(procFile(pid, "comm"))) }

// procStat is what a sweep needs of /proc/PID/stat.
type procStat struct {
	state   byte
	ppid    int
	session int
}

// statOf parses /proc/PID/stat; the name in it may hold anything, so the
// fields are taken after the last parenthesis (proc_pid_stat(5)).
func statOf(pid int) (procStat, bool) {
	b := procFile(pid, "stat")
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return procStat{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 4 {
		return procStat{}, false
	}
	ppid, _ := strconv.Atoi(f[1])
	session, _ := strconv.Atoi(f[3])
	return procStat{state: f[0][0], ppid: ppid, session: session}, true
}

// childrenOf lists the children of a process, of all its threads.
func childrenOf(pid int) []int {
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range tasks {
		out = append(out, parsePIDs(procFile(pid, "task/"+t.Name()+"/children"))...)
	}
	return out
}

// adopted lists the children of our first thread: where the kernel puts the
// orphans of a subreaper (kernel/exit.c, find_new_reaper), among the children
// that this thread started itself.
func adopted() []int {
	self := os.Getpid()
	return parsePIDs(procFile(self, "task/"+strconv.Itoa(self)+"/children"))
}

func parsePIDs(b []byte) []int {
	var out []int
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}
