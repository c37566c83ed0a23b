package provider_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// handRead is a read by hand: open, fstat, read to the end, close.
func handRead(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	b := make([]byte, st.Size)
	for n := 0; n < len(b); {
		m, err := unix.Pread(fd, b[n:], int64(n))
		if err != nil || m == 0 {
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
		n += m
	}
	return b, nil
}

// BenchmarkReads has pairs, to be run in one go: the same work by hand, with
// plain system calls and without fence, version or hash, and by the provider.
func BenchmarkReads(b *testing.B) {
	l, f, w := benchLocal(b)
	old := time.Now().Add(-time.Hour)
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		path := filepath.Join(w, fmt.Sprint("f", size))
		if err := os.WriteFile(path, []byte(strings.Repeat("0123456789abcde 0123456789abcde\n", size/32)), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			b.Fatal(err)
		}
		t := benchTarget(b, l, f, path)
		name := fmt.Sprintf("%dK", size>>10)
		pair(b, "text"+name, int64(size), func() error {
			data, err := handRead(path)
			if err == nil && (bytes.IndexByte(data[:min(len(data), 8192)], 0) >= 0 || !utf8.Valid(data)) {
				err = errors.New("not text")
			}
			return err
		}, func() error {
			_, err := l.ReadText(b.Context(), f, t, provider.ReadOptions{})
			return err
		})
		pair(b, "bytes"+name, int64(size), func() error {
			_, err := handRead(path)
			return err
		}, func() error {
			_, err := l.ReadBytes(b.Context(), f, t, 1<<30)
			return err
		})
		pair(b, "lines"+name, int64(size), func() error {
			data, err := handRead(path)
			lines := strings.SplitN(string(data), "\n", 101)
			if bytes.Count(data, []byte("\n")) < len(lines)-1 {
				err = errors.New("lines")
			}
			return err
		}, func() error {
			_, err := l.ReadLines(b.Context(), f, t, provider.LineWindow{Limit: 100})
			return err
		})
		pair(b, "range"+name, 4<<10, func() error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.Pread(fd, make([]byte, 4<<10), int64(size)-4<<10)
			return err
		}, func() error {
			_, err := l.ReadByteRange(b.Context(), f, t, provider.ByteRange{Offset: int64(size) - 4<<10, Length: 4 << 10})
			return err
		})
	}
	for _, n := range []int{100, 10_000} {
		dir := filepath.Join(w, fmt.Sprint("d", n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for i := range n {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("n", i)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
		t := benchTarget(b, l, f, dir)
		// The first listing waits for the times of the new files to settle.
		if _, err := l.ListDir(b.Context(), f, t, provider.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		pair(b, fmt.Sprint("list", n), 0, func() error { return handList(dir, n) }, func() error {
			_, err := l.ListDir(b.Context(), f, t, provider.ListOptions{})
			return err
		})
		pair(b, fmt.Sprint("page100of", n), 0, func() error { return handList(dir, 100) }, func() error {
			_, err := l.ListDir(b.Context(), f, t, provider.ListOptions{Limit: 100})
			return err
		})
	}
}

// handList reads and sorts the names and looks at the first n of them.
func handList(dir string, n int) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names[:n] {
		var st unix.Stat_t
		if err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return nil
}

// pair runs both sides one after the other.
func pair(b *testing.B, name string, size int64, byHand, wattle func() error) {
	for _, side := range []struct {
		name string
		do   func() error
	}{{"byHand", byHand}, {"wattle", wattle}} {
		b.Run(name+"/"+side.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if err := side.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
