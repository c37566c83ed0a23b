// Package notify wraps the raw calls of seccomp user notification, and nothing
// else: structures, numbers and one function a call, as seccomp_unotify(2) and
// linux/seccomp.h give them. It holds no policy and no state.
package notify
