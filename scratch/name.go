package scratch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/internal/anchor"
)

// shortIDs are the lengths of the short id, tried in turn while another
// session's directory has the name.
var shortIDs = []int{7, 9, 11, 13, 15, 17, 19, 21}

// dirName is `<workspace name>-<id>`, where id is the first digits hex digits
// of the SHA-256 of the session id: session ids need not be hex themselves, so
// a prefix of one would be no usable id. The workspace part is cut at a UTF-8
// border so that the whole fits NAME_MAX.
func dirName(workspace, session string, digits int) string {
	sum := sha256.Sum256([]byte(session))
	id := hex.EncodeToString(sum[:])[:digits]
	return cutUTF8(workspace, maxName-1-len(id)) + "-" + id
}

// cutUTF8 is the longest prefix of at most n bytes that ends between two
// characters. Bytes that are no UTF-8 count as characters.
func cutUTF8(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for end := n; end > 0 && n-end < utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}

// looksOurs tells whether a name could come from [dirName]; it keeps a sweep
// from opening every directory of a crowded parent.
func looksOurs(name string) bool {
	i := strings.LastIndexByte(name, '-')
	id := name[i+1:]
	if i < 0 || len(id) < shortIDs[0] || len(id) > shortIDs[len(shortIDs)-1] || len(id)%2 == 0 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// entryName checks a name that a model gave: relative, with slashes, clean, no
// "..", no NUL, not the marker. It returns the directory part ("." for none)
// and the last name.
func entryName(name string) (dir, base string, err error) {
	switch {
	case name == "":
		return "", "", errors.New("the name is empty")
	case !utf8.ValidString(name):
		return "", "", errors.New("the name is not valid UTF-8")
	case path.IsAbs(name):
		return "", "", errors.New("the name must be relative to the scratch directory")
	}
	for part := range strings.SplitSeq(name, "/") {
		if anchor.CheckName(part) != nil {
			return "", "", errors.New("a part of the name is empty, \".\", \"..\" or holds a forbidden character")
		}
		if len(part) > maxName {
			return "", "", errors.New("a part of the name is longer than 255 bytes")
		}
	}
	dir, base = path.Split(name)
	if dir == "" {
		if reserved(base) {
			return "", "", errors.New("the name is reserved for the marker")
		}
		return ".", base, nil
	}
	if first, _, _ := strings.Cut(dir, "/"); reserved(first) {
		return "", "", errors.New("the name is reserved for the marker")
	}
	return strings.TrimSuffix(dir, "/"), base, nil
}

// reserved: compared without case, since file systems may do so.
func reserved(name string) bool {
	return strings.EqualFold(name, MarkerName) || strings.EqualFold(name, markerTemp)
}
