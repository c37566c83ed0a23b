package provider

import (
	"errors"
	"syscall"
)

// errBecameLink: a link stands where the key had none.
var errBecameLink = errors.New("a symbolic link stands in its place")

// regular is how every read gets at its file: it reaches the target, pins what
// is there and hands it to use, which may open and must close it. Pinning opens
// nothing, so a FIFO or a device is refused at once and does not notice.
//
// use is called again when the file moved away meanwhile.
func (c *call) regular(t Target, use func(*pin) error) error {
	key, err := c.key(t)
	if err != nil {
		return err
	}
	err = c.reach(key, c.unfollowed(key), func(s spot) error {
		if s.name == "" {
			return c.notRegular()
		}
		c.at("found")
		p, err := c.pin(s.dir, s.name)
		if err != nil {
			return err
		}
		if !p.Info.IsRegular() {
			p.Close()
			if p.Info.IsSymlink() && c.leadsNowhere(s.path) {
				return c.fail(CodeNotFound, "the link leads to nothing")
			}
			return c.notRegular()
		}
		err = use(p)
		if errors.Is(err, syscall.ESTALE) {
			return errMoved{err: err}
		}
		return err
	})
	if aborted := c.alive(); aborted != nil {
		return aborted
	}
	if err != nil {
		return c.mapped(err)
	}
	return nil
}

// readFile is regular for a read that ends with the call.
func (c *call) readFile(t Target, use func(*pin) error) error {
	return c.regular(t, func(p *pin) error {
		defer p.Close()
		return use(p)
	})
}

// steady is for reads whose version will have no hash: as describe does, it
// waits once when the file changed just now, before anything is read.
func (c *call) steady(p *pin) error {
	s := stampOf(c.clock, p.Info)
	d := described{info: p.Info, token: token{stamp: s, racy: racy(c.clock, p.made, s)}}
	if !d.waitable() {
		return nil
	}
	if err := c.settle(s); err != nil {
		return err
	}
	made := c.clock.Now()
	info, err := p.Stat()
	if err != nil {
		return err
	}
	p.made, p.Info = made, info
	return nil
}
