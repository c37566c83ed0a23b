//go:build !linux

package fence

import "runtime"

// ProbeKernel: this system has no Landlock. Commands in a fence are refused,
// file operations are fenced by path checks.
func ProbeKernel() Kernel {
	return Kernel{Why: "landlock exists on Linux only; on " + runtime.GOOS + " file operations are fenced by path checks and fenced commands are refused"}
}
