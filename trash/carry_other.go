//go:build unix && !linux && !darwin

package trash

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// carry gives the copy dst mode, owner where permitted, and time of src, to the
// microsecond. Extended attributes and access lists are not carried here.
func carry(src, dst *os.File, i anchor.Info) (lost []string, err error) {
	d := int(dst.Fd())
	perm := i.Perm()
	if unix.Fchown(d, int(i.UID), int(i.GID)) != nil {
		lost = append(lost, "owner")
		if i.IsRegular() {
			perm &^= 0o6000
		}
	}
	if err := unix.Fchmod(d, perm); err != nil {
		return lost, &fs.PathError{Op: "chmod", Path: dst.Name(), Err: err}
	}
	t := unix.NsecToTimeval(i.Mtime)
	if err := unix.Futimes(d, []unix.Timeval{t, t}); err != nil {
		return lost, &fs.PathError{Op: "utimes", Path: dst.Name(), Err: err}
	}
	return append(lost, "attributes"), nil
}

// carryLink: a link is made anew, with owner and time of its making.
func carryLink(*anchor.Dir, string, anchor.Info) (lost []string) { return []string{"owner", "times"} }

// flush makes a copy durable with everything in it.
func flush(d *anchor.Dir, name string, i anchor.Info) error {
	if i.IsSymlink() {
		return d.Sync()
	}
	if !i.IsDir() {
		file, err := d.Open(name, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		return file.Sync()
	}
	sub, err := d.Walk(filepath.Base(name))
	if err != nil {
		return err
	}
	defer sub.Close()
	es, err := sub.ReadDir(0)
	if err != nil {
		return err
	}
	for _, e := range es {
		j, err := sub.Lstat(e.Name)
		if err == nil {
			err = flush(sub, e.Name, j)
		}
		if err != nil {
			return err
		}
	}
	return sub.Sync()
}
