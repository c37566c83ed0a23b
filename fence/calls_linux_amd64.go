package fence

import "golang.org/x/sys/unix"

// auditArch is AUDIT_ARCH_X86_64 (linux/audit.h).
const auditArch = 0xC000003E

// x32Bit marks calls of the x32 ABI, which share the architecture value
// (arch/x86/include/uapi/asm/unistd.h).
const x32Bit = 0x40000000

var callsOfArch = []Call{
	at(unix.SYS_OPEN, "open", CallOpen, -1, 0, 1).mode(2),
	at(unix.SYS_CREAT, "creat", CallCreat, -1, 0, -1),
	at(unix.SYS_UNLINK, "unlink", CallUnlink, -1, 0, -1),
	at(unix.SYS_RMDIR, "rmdir", CallRmdir, -1, 0, -1),
	two(unix.SYS_RENAME, "rename", CallRename, -1, 0, -1, 1, -1),
	two(unix.SYS_LINK, "link", CallLink, -1, 0, -1, 1, -1),
	two(unix.SYS_SYMLINK, "symlink", CallSymlink, -1, 0, -1, 1, -1),
	at(unix.SYS_MKDIR, "mkdir", CallMkdir, -1, 0, -1),
	at(unix.SYS_MKNOD, "mknod", CallMknod, -1, 0, -1).mode(1),
	at(unix.SYS_CHMOD, "chmod", CallMeta, -1, 0, -1),
	at(unix.SYS_CHOWN, "chown", CallMeta, -1, 0, -1),
	at(unix.SYS_LCHOWN, "lchown", CallMeta, -1, 0, -1).nofollow(),
	at(unix.SYS_UTIME, "utime", CallMeta, -1, 0, -1),
	at(unix.SYS_UTIMES, "utimes", CallMeta, -1, 0, -1),
	at(unix.SYS_FUTIMESAT, "futimesat", CallMeta, 0, 1, -1),
}
