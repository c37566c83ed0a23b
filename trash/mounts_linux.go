package trash

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// listsMounts: every trash that something can be put into must be found again
// by a listing.
const listsMounts = true

// mount is one line of the mount table.
type mount struct {
	// point is where it is mounted; root is which directory of its file system
	// is.
	point, root string
	auto        bool
	// network: its files are another machine's, which may not answer.
	network bool
}

// mounts reads the mount table, proc_pid_mountinfo(5).
func mounts() ([]mount, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(b)), nil
}

func parseMounts(s string) []mount {
	var all []mount
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) < 7 {
			continue
		}
		m := mount{root: unescape(f[3]), point: unescape(f[4])}
		for i, w := range f[6:] {
			if w == "-" && 6+i+1 < len(f) {
				m.auto, m.network = f[6+i+1] == "autofs", networked(f[6+i+1])
				break
			}
		}
		all = append(all, m)
	}
	return all
}

// networked tells whether the files of a file system are another machine's, by
// its type.
func networked(kind string) bool {
	switch kind {
	case "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "lustre":
		return true
	}
	return false
}

// unescape undoes the kernel's octal escapes of blank, tab, line feed and
// backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// remote tells whether a file system is one on which no trash directory is made
// (T25).
func remote(d *anchor.Dir) bool {
	file, err := d.File()
	if err != nil {
		return false
	}
	defer file.Close()
	var st unix.Statfs_t
	if unix.Fstatfs(int(file.Fd()), &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case 0x517b, 0xff534d42, 0xfe534d42: // smbfs, cifs, smb2: statfs(2)
		return true
	}
	return false
}
