//go:build unix && !darwin

package trash

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

const (
	sizesName = "directorysizes"
	// sizesTemp is what the file is written to first. There is one name only, so
	// that what a killed process leaves is one file, which the next one removes.
	sizesTemp = ".directorysizes.wattle"
	// tempStale is the age at which that file is a leftover.
	tempStale = time.Minute
	// maxSizes bounds what is read of the file; its lines are at most some 800
	// bytes, so that is more than 20,000 directories.
	maxSizes = 16 << 20
	// maxQueue bounds how many directories wait to be measured: each holds
	// three handles. What is too much has no size.
	maxQueue = 32
)

// sizer measures trashed directories in the background, one after the other,
// and keeps the file directorysizes (T19). Its goroutine begins with the first
// directory and ends when the queue is closed or ctx is cancelled.
type sizer struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // of the fields below; nothing is waited for under it
	queue   chan measuring
	closed  bool
	running chan struct{} // closed when the goroutine ended; nil before it began

	// file is held while directorysizes of any trash is changed, so that this
	// process loses no update. Between processes the last one wins, as the
	// specification has it.
	file sync.Mutex
}

type measuring struct {
	p    *place
	name string
	data anchor.Info
}

func newSizer() *sizer {
	s := &sizer{queue: make(chan measuring, maxQueue)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// measure asks for the size of a directory. It does not wait.
func (s *sizer) measure(p *place, name string, data anchor.Info) {
	own, err := p.again()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		select {
		case s.queue <- measuring{own, name, data}:
			if s.running == nil {
				s.running = make(chan struct{})
				go s.run()
			}
			return
		default:
		}
	}
	own.close()
}

// again gives handles of their own on the same trash.
func (p *place) again() (*place, error) {
	q := &place{base: p.base, home: p.home, self: p.self}
	for _, d := range []struct {
		to   **anchor.Dir
		from *anchor.Dir
	}{{&q.dir, p.dir}, {&q.info, p.info}, {&q.files, p.files}} {
		if d.from == nil {
			continue
		}
		var err error
		if *d.to, err = d.from.Walk("."); err != nil {
			q.close()
			return nil, err
		}
	}
	return q, nil
}

func (s *sizer) run() {
	defer close(s.running)
	for m := range s.queue {
		if s.ctx.Err() == nil {
			s.one(m)
		}
		m.p.close()
	}
}

func (s *sizer) one(m measuring) {
	bytes, err := m.p.files.Usage(s.ctx, m.name)
	if err != nil {
		return
	}
	s.file.Lock()
	defer s.file.Unlock()
	// It may have been restored meanwhile, and the name given to another.
	if now, err := m.p.files.Lstat(m.name); err != nil || !now.SameFile(m.data) {
		return
	}
	i, err := m.p.info.Lstat(m.name + record.InfoSuffix)
	if err != nil {
		return
	}
	all := []record.Size{{Bytes: bytes, Mtime: seconds(i.Mtime), Name: m.name}}
	for _, old := range readSizes(m.p.dir) {
		if old.Name != m.name && current(m.p, old) {
			all = append(all, old)
		}
	}
	writeSizes(m.p.dir, all)
}

// current tells whether a line is about what has that name now.
func current(p *place, s record.Size) bool {
	i, err := p.info.Lstat(s.Name + record.InfoSuffix)
	return err == nil && seconds(i.Mtime) == s.Mtime
}

func seconds(nanos int64) int64 { return time.Unix(0, nanos).Unix() }

// forget drops the lines of names that left the trash.
func (s *sizer) forget(p *place, gone map[string]bool) {
	s.file.Lock()
	defer s.file.Unlock()
	old := readSizes(p.dir)
	var all []record.Size
	for _, o := range old {
		if !gone[o.Name] {
			all = append(all, o)
		}
	}
	if len(all) < len(old) {
		writeSizes(p.dir, all)
	}
}

// close stops taking directories, and waits for the queue until ctx ends.
func (s *sizer) close(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	running := s.running
	s.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
	s.cancel()
	if running != nil {
		<-running
	}
}

// readSizes gives what is there and can be read: the file only saves work.
func readSizes(dir *anchor.Dir) []record.Size {
	file, err := dir.Open(sizesName, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	if i, err := anchor.StatFile(file); err != nil || !i.IsRegular() || i.Size > maxSizes {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(file, maxSizes))
	if err != nil {
		return nil
	}
	return record.ParseSizes(b)
}

// writeSizes replaces the file whole. What fails is left as it was.
func writeSizes(dir *anchor.Dir, all []record.Size) {
	file, err := dir.Open(sizesTemp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if i, serr := dir.Lstat(sizesTemp); serr != nil || time.Since(time.Unix(0, i.Mtime)) < tempStale || dir.Unlink(sizesTemp) != nil {
			return // another process is writing: its update wins
		}
		file, err = dir.Open(sizesTemp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return
	}
	_, err = file.Write(record.FormatSizes(all))
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = dir.Rename(sizesTemp, dir, sizesName, anchor.Replace)
	}
	if err != nil {
		_ = dir.Unlink(sizesTemp)
	}
}
