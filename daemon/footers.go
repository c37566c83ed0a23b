package daemon

import (
	"strings"
	"sync"
)

// footers are the last footers that a session's reads of lines ended with. A
// model may take one for a part of the file and write it back (cases/edit E12).
// Any number of goroutines may use one at once.
type footers struct {
	mu   sync.Mutex
	last [128]string
	next int
}

func (f *footers) add(footer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[f.next] = footer
	f.next = (f.next + 1) % len(f.last)
}

// saysFooter is the warning of a write that ends with a footer.
const saysFooter = "the last line is the footer of a read, which is no part of a file; it was written as it is"

// warn gives the warning if the last line of a text is one of the footers.
func (f *footers) warn(text string) string {
	line := strings.TrimRight(text, "\r\n")
	line = strings.TrimSpace(line[strings.LastIndexByte(line, '\n')+1:])
	if line == "" {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.last {
		if line == known {
			return saysFooter
		}
	}
	return ""
}
