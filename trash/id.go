//go:build unix && !darwin

package trash

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// An id is two hashes, "where.what": which trash directory and which name in
// it, and which data. The first finds an entry, the second tells whether it is
// still the one that was meant. The trash directory goes in by its identity, so
// that the id is the same through every mount that shows it. Device numbers may
// change when a file system is mounted again; then there are new ids.

var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func whereOf(dir anchor.Info, name string) string {
	b := binary.BigEndian.AppendUint64(nil, dir.Dev)
	b = binary.BigEndian.AppendUint64(b, dir.Ino)
	return shortHash(append(b, name...), 10)
}

// whatOf takes a zero Info for "no data".
func whatOf(data anchor.Info) string {
	b := binary.BigEndian.AppendUint64(nil, data.Dev)
	return shortHash(binary.BigEndian.AppendUint64(b, data.Ino), 5)
}

func shortHash(b []byte, n int) string {
	h := sha256.Sum256(b)
	return idAlphabet.EncodeToString(h[:n])
}

func idOf(dir anchor.Info, name string, data anchor.Info) string {
	return whereOf(dir, name) + "." + whatOf(data)
}

func splitID(id string) (where, what string, ok bool) {
	where, what, ok = strings.Cut(id, ".")
	return where, what, ok && len(where) == 16 && len(what) == 8
}
