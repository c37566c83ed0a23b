package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// stamp is what the kernel says of one state of a file. Two states of a file
// with one stamp are the same content, unless the stamp was racy.
type stamp struct {
	dev, ino           uint64
	size, mtime, ctime int64
}

func stampOf(c Clock, i anchor.Info) stamp {
	return stamp{dev: i.Dev, ino: i.Ino, size: i.Size, mtime: c.Stamp(i.Mtime), ctime: c.Stamp(i.Ctime)}
}

// digest is the SHA-256 of a file's bytes.
type digest [sha256.Size]byte

// token is a Version opened up (decision D5). The hash is in it when whoever
// made the token had all of the content in hand, so that it holds across
// restarts and processes; otherwise the table of [hashes] may know it.
type token struct {
	stamp
	racy   bool
	hashed bool
	sum    digest
}

const (
	tokenRacy   = 1 << 0
	tokenHashed = 1 << 1

	tokenPlain  = 1 + 5*8
	tokenPrefix = "1" // the form of the token, for a later one
)

// version writes the token in its opaque form.
func (t token) version() Version {
	b := make([]byte, 0, tokenPlain+len(t.sum))
	var flags byte
	if t.racy {
		flags |= tokenRacy
	}
	if t.hashed {
		flags |= tokenHashed
	}
	b = append(b, flags)
	for _, v := range []uint64{t.dev, t.ino, uint64(t.size), uint64(t.mtime), uint64(t.ctime)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	if t.hashed {
		b = append(b, t.sum[:]...)
	}
	return Version(tokenPrefix + base64.RawURLEncoding.EncodeToString(b))
}

// parseVersion opens a token. Anything that was not made here, such as the
// mark of a file that was gone right after its publication, is not ok and
// equals no file.
func parseVersion(v Version) (t token, ok bool) {
	if len(v) < 1 || string(v[:1]) != tokenPrefix || len(v) > 1+base64.RawURLEncoding.EncodedLen(tokenPlain+sha256.Size) {
		return token{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(v[1:]))
	if err != nil || len(b) < tokenPlain {
		return token{}, false
	}
	flags, rest := b[0], b[tokenPlain:]
	if flags&^(tokenRacy|tokenHashed) != 0 {
		return token{}, false
	}
	t.racy, t.hashed = flags&tokenRacy != 0, flags&tokenHashed != 0
	if t.hashed && len(rest) != sha256.Size || !t.hashed && len(rest) != 0 {
		return token{}, false
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[1+8*i:]) }
	t.dev, t.ino = at(0), at(1)
	t.size, t.mtime, t.ctime = int64(at(2)), int64(at(3)), int64(at(4))
	copy(t.sum[:], rest)
	// The decoder skips line breaks: one token has one spelling here.
	return t, t.version() == v
}

// missingVersion is the version of a file that was gone when its publication
// was looked at. It equals no real token (fs-contract 4.1 step 8).
func missingVersion(k TargetKey) Version { return Version("missing:" + string(k)) }
