package anchor

// The type bits of [Info.Mode] and [Entry.Type], as in inode(7); the same
// numbers on every system.
const (
	TypeMask    = 0o170000
	TypeSocket  = 0o140000
	TypeSymlink = 0o120000
	TypeRegular = 0o100000
	TypeBlock   = 0o060000
	TypeDir     = 0o040000
	TypeChar    = 0o020000
	TypeFIFO    = 0o010000
)

// Info is what the kernel says of one file, never of a link's target.
type Info struct {
	Dev, Ino uint64
	// Mode holds the type bits and the permission bits 07777.
	Mode     uint32
	Nlink    uint64
	UID, GID uint32
	Size     int64
	// Times are nanoseconds since 1970. Btime, the time of birth, is 0 when
	// the file system does not keep it.
	Mtime, Ctime, Btime int64
	// MountID names the mount in which the file was reached, 0 when unknown.
	// It can be compared within one run of the program only.
	MountID uint64
}

// Type is the type bits of the mode.
func (i Info) Type() uint32 { return i.Mode & TypeMask }

// Perm is the permission bits with set-id and sticky bits (07777).
func (i Info) Perm() uint32 { return i.Mode & 0o7777 }

// IsDir tells whether it is a directory.
func (i Info) IsDir() bool { return i.Type() == TypeDir }

// IsRegular tells whether it is a regular file.
func (i Info) IsRegular() bool { return i.Type() == TypeRegular }

// IsSymlink tells whether it is a symbolic link.
func (i Info) IsSymlink() bool { return i.Type() == TypeSymlink }

// SameFile tells whether both are one inode reached on one device. Two zero
// inodes are never the same.
func (i Info) SameFile(o Info) bool { return i.Ino != 0 && i.Ino == o.Ino && i.Dev == o.Dev }

// SameMount tells whether both were reached in the same mount. Where mount
// identities are unknown the devices are compared, which does not see a bind
// mount of the same file system.
func (i Info) SameMount(o Info) bool {
	if i.MountID != 0 && o.MountID != 0 {
		return i.MountID == o.MountID
	}
	return i.Dev == o.Dev
}

// Entry is one name in a directory.
type Entry struct {
	Name string
	// Type holds the type bits; 0 when the entry was gone before its type
	// could be asked. It is a snapshot: the name may be another file by now.
	Type uint32
	// Ino as the directory has it; for a mount point, that of the directory
	// underneath.
	Ino uint64
}

// IsDir tells whether the entry was a directory when it was read.
func (e Entry) IsDir() bool { return e.Type == TypeDir }

// RenameHow says what [Dir.Rename] does when the new name exists.
type RenameHow int

const (
	// Replace an existing file atomically, rename(2).
	Replace RenameHow = iota
	// NoReplace fails with EEXIST, renameat2(2) RENAME_NOREPLACE.
	NoReplace
	// Exchange swaps both names atomically; both must exist. RENAME_EXCHANGE.
	Exchange
)
