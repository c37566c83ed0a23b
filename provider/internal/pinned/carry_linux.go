//go:build !portable

package pinned

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
)

const aclAttr = "system.posix_acl_access" // acl(5)

// sealed are attributes that vouch for the old content (integrity hash and
// signature, Documentation/ABI/testing/evm): on new content they would only
// make the file unreadable.
var sealed = []string{"security.ima", "security.evm"}

// Carry gives to the extended attributes and the access list of the pinned file
// as they are now, and owner, group and mode (07777) of from, its state. What could not be carried over
// is named: "owner", "group", "setid", "acl", or an attribute's name. An error
// means that the mode could not be set: to must then not be published.
//
// The order matters. chown(2) clears set-id bits and capabilities, so it comes
// first; an access list rewrites the group bits, so the mode comes last.
func (p *File) Carry(from anchor.Info, to *os.File) (lost []string, err error) {
	err = control(to, func(dst int) error {
		now, err := anchor.StatFile(to)
		if err != nil {
			return err
		}
		lost = carryOwner(from, now, dst)
		// Set-id bits of one owner must not pass to another.
		perm := from.Perm()
		if len(lost) > 0 && perm&0o6000 != 0 {
			perm &^= 0o6000
			lost = append(lost, "setid")
		}
		attrs, err := p.carryAttrs(dst)
		if err != nil {
			return err
		}
		// With an access list the group bits are its mask (acl(5)); without it
		// they would open the file to the whole group.
		if slices.Contains(attrs, "acl") {
			perm &^= 0o070
		}
		lost = append(lost, attrs...)
		if err := unix.Fchmod(dst, perm); err != nil {
			return &fs.PathError{Op: "fchmod", Path: p.name, Err: err}
		}
		return nil
	})
	return lost, err
}

func carryOwner(from, now anchor.Info, dst int) (lost []string) {
	if from.UID == now.UID && from.GID == now.GID {
		return nil
	}
	if unix.Fchown(dst, int(from.UID), int(from.GID)) == nil {
		return nil
	}
	if from.UID != now.UID && unix.Fchown(dst, int(from.UID), -1) != nil {
		lost = append(lost, "owner")
	}
	if from.GID != now.GID && unix.Fchown(dst, -1, int(from.GID)) != nil {
		lost = append(lost, "group")
	}
	return lost
}

// carryAttrs copies every attribute that can be listed, and takes away an
// access list that the new file inherited and the old one does not have.
func (p *File) carryAttrs(dst int) (lost []string, err error) {
	err = control(p.path, func(fd int) (err error) {
		lost, err = copyAttrs(fmt.Sprintf("/proc/self/fd/%d", fd), dst, p.name)
		return err
	})
	return lost, err
}

func copyAttrs(src string, dst int, shown string) (lost []string, err error) {
	names, err := listAttrs(func(b []byte) (int, error) { return unix.Listxattr(src, b) })
	if err != nil {
		// No attributes here, or /proc is not mounted: then what may be lost
		// cannot be named one by one.
		if errors.Is(err, unix.ENOTSUP) {
			return nil, nil
		}
		return []string{"attributes"}, nil
	}
	for _, n := range names {
		if slices.Contains(sealed, n) {
			lost = append(lost, n)
			continue
		}
		val, err := readAttr(func(b []byte) (int, error) { return unix.Getxattr(src, n, b) })
		if errors.Is(err, unix.ENODATA) {
			continue // taken away meanwhile
		}
		if err == nil {
			have, herr := readAttr(func(b []byte) (int, error) { return unix.Fgetxattr(dst, n, b) })
			if herr == nil && bytes.Equal(have, val) {
				continue // labels are often right from the start, and not ours to set
			}
			err = unix.Fsetxattr(dst, n, val, 0)
		}
		if err != nil {
			if n == aclAttr {
				n = "acl"
			}
			lost = append(lost, n)
		}
	}
	if !slices.Contains(names, aclAttr) {
		// A default access list of the directory would let in who was not let
		// in before: failing to remove it must stop the publication.
		err := unix.Fremovexattr(dst, aclAttr)
		if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
			return lost, &fs.PathError{Op: "fremovexattr", Path: shown, Err: err}
		}
	}
	return lost, nil
}

// listAttrs and readAttr ask for the size first; the size may change in
// between (ERANGE), so a few tries. The kernel bounds both to 64 KiB.
func listAttrs(call func([]byte) (int, error)) ([]string, error) {
	b, err := readAttr(call)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	var names []string
	for n := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		names = append(names, string(n))
	}
	return names, nil
}

func readAttr(call func([]byte) (int, error)) ([]byte, error) {
	for try := 0; ; try++ {
		n, err := retry(func() (int, error) { return call(nil) })
		if err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		n, err = retry(func() (int, error) { return call(b) })
		if errors.Is(err, unix.ERANGE) && try < 4 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return b[:n], nil
	}
}
