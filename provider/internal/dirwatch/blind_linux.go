package dirwatch

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// elsewhere: file systems in which others than this kernel change files. The
// numbers are those of statfs(2) and include/uapi/linux/magic.h, or of the
// file system's own source where those do not have them.
var elsewhere = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "CIFS",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.V9FS_MAGIC:        "9p",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.NCP_SUPER_MAGIC:   "NCP",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x01161970:             "GFS2",
	0x0bd00bd0:             "Lustre",
	0x47504653:             "GPFS",
	0x786f4256:             "vboxsf",
	0xbacbacbc:             "vmhgfs",
	0x7c7c6673:             "prl_fs",
}

// made: file systems whose content the kernel makes up when it is read.
var made = map[uint32]string{
	unix.PROC_SUPER_MAGIC:    "proc",
	unix.SYSFS_MAGIC:         "sysfs",
	unix.CGROUP_SUPER_MAGIC:  "cgroup",
	unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEBUGFS_MAGIC:       "debugfs",
	unix.TRACEFS_MAGIC:       "tracefs",
	unix.SECURITYFS_MAGIC:    "securityfs",
	unix.SELINUX_MAGIC:       "selinuxfs",
	unix.EFIVARFS_MAGIC:      "efivarfs",
}

// Blind says why not every change in a directory is told on its file system, or
// "". Changes that come through this kernel are told on all but those that it
// makes up itself.
func Blind(dir *anchor.Dir) string {
	magic, err := fileSystem(dir)
	switch {
	case err != nil:
		return "unknown: the file system does not say what it is (" + err.Error() + ")"
	case elsewhere[magic] != "":
		return elsewhere[magic] + ": changes that do not come through this kernel are not told"
	case made[magic] != "":
		return made[magic] + ": the kernel makes its content up and does not tell when it changes"
	}
	return ""
}

func fileSystem(dir *anchor.Dir) (magic uint32, err error) {
	h, err := dir.File()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	var st unix.Statfs_t
	err = control(h, func(fd int) error {
		err := unix.Fstatfs(fd, &st)
		for errors.Is(err, unix.EINTR) {
			err = unix.Fstatfs(fd, &st)
		}
		return err
	})
	// The type is 32 bits wide, in a field that may be signed.
	return uint32(st.Type), err
}
