package provider

// verdict is what a guard says of a file that is there.
type verdict int

const (
	stale verdict = iota
	fresh
	// byHash: only the content can tell.
	byHash
)

// judge compares a guard with the state of a file (decision D5): equal and not
// racy is fresh; otherwise the content decides, if its hash is known.
func (c *call) judge(v Version, now stamp) (verdict, digest) {
	t, ok := parseVersion(v)
	if !ok {
		return stale, digest{}
	}
	if t.stamp == now && !t.racy {
		return fresh, digest{}
	}
	if t.size != now.size {
		return stale, digest{}
	}
	if t.hashed {
		return byHash, t.sum
	}
	// A racy token without a hash may have been made before the last change
	// under its stamp; what the table knows came later.
	if t.racy {
		return stale, digest{}
	}
	if sum, ok := c.known.lookup(t.stamp); ok {
		return byHash, sum
	}
	return stale, digest{}
}

const (
	saysGone    = "it does not exist any more"
	saysChanged = "it has changed since it was read"
)

func (c *call) stale(detail string) error { return c.fail(CodeStaleVersion, detail) }
