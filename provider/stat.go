package provider

import (
	"context"
	"time"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/internal/anchor"
)

// Stat implements [Provider].
func (l *Local) Stat(ctx context.Context, f *fence.Fence, t Target) (*Info, error) {
	c, err := l.begin(ctx, f, "stat", t.DisplayPath)
	if err != nil {
		return nil, err
	}
	key, err := c.key(t)
	if err != nil {
		return nil, err
	}
	var out *Info
	err = c.reach(key, c.followed(key), func(s spot) error {
		d, err := c.describe(s.lstat)
		if err != nil {
			return err
		}
		if d.info.IsSymlink() {
			if c.leadsNowhere(s.path) {
				return nil
			}
			return errMoved{err: errBecameLink}
		}
		out = &Info{Version: d.token.version(), Type: d.kind(), Size: d.size()}
		return nil
	})
	return out, c.looked(err)
}

// Lstat implements [Provider].
func (l *Local) Lstat(ctx context.Context, f *fence.Fence, path string, o ResolveOptions) (*PathInfo, error) {
	c, err := l.begin(ctx, f, "lstat", path)
	if err != nil {
		return nil, err
	}
	way, shown, err := c.absolute(path, o)
	if err != nil {
		return nil, err
	}
	c.shown = shown
	var out *PathInfo
	anew := c.unfollowed(way)
	at, err := anew()
	if err == nil {
		err = c.reach(at, anew, func(s spot) error {
			d, err := c.describe(s.lstat)
			if err != nil {
				return err
			}
			out = &PathInfo{Version: d.token.version(), Type: d.kind(), Size: d.size()}
			return nil
		})
	}
	return out, c.looked(err)
}

// looked turns the error of a look into its result: absence is none, unless
// the call was cancelled while it looked.
func (c *call) looked(err error) error {
	if aborted := c.alive(); aborted != nil {
		return aborted
	}
	if err == nil || absent(err) && CodeOf(err) == "" {
		return nil
	}
	return c.mapped(err)
}

// described is a file and the version that stands for its state.
type described struct {
	info  anchor.Info
	token token
}

func (d described) kind() FileType {
	switch {
	case d.info.IsRegular():
		return TypeFile
	case d.info.IsDir():
		return TypeDirectory
	case d.info.IsSymlink():
		return TypeSymlink
	}
	return TypeOther
}

func (d described) size() *int64 { return &d.info.Size }

// describe looks at a file. When it changed just now, so that the next change
// might not show, it waits once until that is over (decision D5): versions of
// stat and listDir are made without reading, so they have no hash to fall back
// on.
func (c *call) describe(look func() (anchor.Info, error)) (described, error) {
	d, err := c.glance(look)
	if err != nil || !d.waitable() {
		return d, err
	}
	if err := c.settle(d.token.stamp); err != nil {
		return d, err
	}
	return c.glance(look)
}

// glance looks once. The clock is read first: a change after the look is
// stamped with that time or a later one.
func (c *call) glance(look func() (anchor.Info, error)) (described, error) {
	now := c.clock.Now()
	info, err := look()
	if err != nil {
		return described{}, err
	}
	if err := c.alive(); err != nil {
		return described{}, err
	}
	s := stampOf(c.clock, info)
	return described{info: info, token: token{stamp: s, racy: racy(c.clock, now, s)}}, nil
}

// waitable: only regular files can be guarded, and times in whole seconds are
// not worth the wait.
func (d described) waitable() bool {
	return d.token.racy && d.info.IsRegular() && !wholeSeconds(d.token.stamp)
}

// settle waits until a change would be stamped with a time that differs from
// those in s by more than two ticks. The clock moves in ticks too, so it is
// asked again; a clock that stands still is given up after a few.
func (c *call) settle(s stamp) error {
	tick := c.clock.Tick()
	for range 4 {
		last := int64(0)
		now := c.clock.Now()
		for _, t := range []int64{s.mtime, s.ctime} {
			if near(now, t, int64(2*tick)) {
				last = max(last, t)
			}
		}
		if last == 0 {
			return nil
		}
		t := time.NewTimer(min(time.Duration(last-now)+3*tick, 5*tick))
		select {
		case <-t.C:
		case <-c.ctx.Done():
			t.Stop()
			return c.alive()
		}
	}
	return nil
}
