package sandbox

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
)

// maxRulesets bounds the rulesets that are kept open.
const maxRulesets = 64

// rulesetCache keeps the kernel objects of fences, the latest used.
type rulesetCache struct {
	mu    sync.Mutex
	list  []cachedRuleset // oldest first; len ≤ maxRulesets
	shut  bool
	compu sync.Mutex // one compilation at a time: it lists directories
}

type cachedRuleset struct {
	fence *fence.Fence
	rs    *fence.Ruleset
	fd    int
	flags uint32
}

func (c *rulesetCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	for _, e := range c.list {
		_ = unix.Close(e.fd)
	}
	c.list = nil
}

// forget closes the object of a fence that is not used any more.
func (c *rulesetCache) forget(f *fence.Fence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.list {
		if e.fence == f {
			c.list = append(c.list[:i], c.list[i+1:]...)
			_ = unix.Close(e.fd)
			return
		}
	}
}

// take returns a duplicate of the cached descriptor if the ruleset is fresh.
func (c *rulesetCache) take(f *fence.Fence) (cachedRuleset, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.list {
		if e.fence != f {
			continue
		}
		c.list = append(c.list[:i], c.list[i+1:]...)
		if !e.rs.Fresh() {
			_ = unix.Close(e.fd)
			return cachedRuleset{}, false
		}
		c.list = append(c.list, e)
		fd, err := unix.FcntlInt(uintptr(e.fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return cachedRuleset{}, false
		}
		e.fd = fd
		return e, true
	}
	return cachedRuleset{}, false
}

func (c *rulesetCache) put(e cachedRuleset) {
	fd, err := unix.FcntlInt(uintptr(e.fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return
	}
	e.fd = fd
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		_ = unix.Close(fd)
		return
	}
	c.list = append(c.list, e)
	if len(c.list) > maxRulesets {
		_ = unix.Close(c.list[0].fd)
		c.list = c.list[1:]
	}
}

// ruleset gives the rules and the kernel object of a fence; the descriptor is
// the caller's. f is base, or base with a temporary directory, which has an
// object of its own.
func (s *runnerSys) ruleset(r *Runner, base, f *fence.Fence) (*fence.Ruleset, int, uint32, error) {
	c := &s.rules
	if f == base {
		if e, ok := c.take(base); ok {
			return e.rs, e.fd, e.flags, nil
		}
	}
	c.compu.Lock()
	defer c.compu.Unlock()
	rs := f.CompileLandlock(r.kernel)
	fd, flags, err := rs.Open()
	if err != nil {
		return rs, -1, 0, err
	}
	if f == base {
		c.put(cachedRuleset{fence: base, rs: rs, fd: fd, flags: flags})
	}
	return rs, fd, flags, nil
}
