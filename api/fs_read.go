package api

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/provider"
)

// FSListDirParams list a directory, or a page of it: After is a name, or Next
// of the page before.
type FSListDirParams struct {
	FileRef
	provider.ListOptions
}

// Validate checks the name and the page.
func (p *FSListDirParams) Validate() error {
	if p.Limit < 0 {
		return InvalidParams("/limit", "a negative number")
	}
	if _, ok := NameOfPage(p.After); !ok {
		return InvalidParams("/after", "neither a name nor the end of a page")
	}
	return p.FileRef.Validate()
}

// FSListDirResult lists a directory.
type FSListDirResult struct {
	Entries []provider.DirEntry `json:"entries"`
	// Next is what After is for the next page, when the listing was cut at its
	// limit. It is needed where names are no UTF-8, which Entries cannot spell.
	Next string `json:"next,omitzero"`
}

// PageAfter is the value of After that goes on behind a name. A name that is no
// UTF-8 travels as a slash, which no name has, and its bytes in base64.
func PageAfter(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return "/" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// NameOfPage is the inverse of [PageAfter].
func NameOfPage(after string) (string, bool) {
	coded, ok := strings.CutPrefix(after, "/")
	if !ok {
		return after, true
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	return string(b), err == nil && len(b) > 0
}

// FSReadTextParams read a text file.
type FSReadTextParams struct {
	FileRef
	provider.ReadOptions
}

// Validate checks the name and the cap.
func (p *FSReadTextParams) Validate() error {
	if p.MaxBytes < 0 {
		return InvalidParams("/maxBytes", "a negative size")
	}
	return p.FileRef.Validate()
}

// MaxChunkBytes is the largest piece of a stream.
const MaxChunkBytes = 1 << 20

// FSStreamTextParams begin a stream, go on with one, or end it. A stream
// belongs to the connection that began it.
//
// A stream without Window flows as fast as its connection is read. With one it
// stands still after so many chunks, until it is given more: so a client can
// hold many streams beside its calls and keep none of them in memory.
type FSStreamTextParams struct {
	FileRef
	// ChunkBytes is the most that one chunk holds, at most [MaxChunkBytes]; 0
	// is the daemon's choice.
	ChunkBytes int `json:"chunkBytes,omitzero"`
	// Window is how many chunks may come, or how many more.
	Window int `json:"window,omitzero"`
	// StreamID names a stream that runs; it is then given Window more chunks,
	// or ended by Stop. One that is over already is no error.
	StreamID string `json:"streamId,omitzero"`
	Stop     bool   `json:"stop,omitzero"`
}

// Validate keeps the three uses apart.
func (p *FSStreamTextParams) Validate() error {
	switch {
	case p.ChunkBytes < 0 || p.ChunkBytes > MaxChunkBytes:
		return InvalidParams("/chunkBytes", "a chunk has between 1 and %d bytes", MaxChunkBytes)
	case p.ChunkBytes != 0 && p.ChunkBytes < utf8.UTFMax:
		return InvalidParams("/chunkBytes", "a character may need %d bytes", utf8.UTFMax)
	case p.Window < 0:
		return InvalidParams("/window", "a negative number")
	case p.StreamID == "" && p.Stop:
		return InvalidParams("/streamId", "which stream is to stop?")
	case p.StreamID == "":
		return p.FileRef.Validate()
	case p.Path != "":
		return InvalidParams("/path", "the stream has its file")
	case p.Cwd != "":
		return InvalidParams("/cwd", "the stream has its file")
	case p.Target != nil:
		return InvalidParams("/target", "the stream has its file")
	case p.ChunkBytes != 0:
		return InvalidParams("/chunkBytes", "the stream has begun")
	case p.Stop == (p.Window > 0):
		return InvalidParams("/window", "exactly one of window and stop is needed")
	}
	return nil
}

// FSStreamTextResult names the stream. It comes before the first chunk, except
// in a batch, whose answer is one.
type FSStreamTextResult struct {
	StreamID string `json:"streamId"`
	// Version is that of the file when it was opened.
	Version provider.Version `json:"version,omitzero"`
	// BOM: the file begins with a byte-order mark, which is no part of the text.
	BOM bool `json:"bom,omitzero"`
}

// FSReadBytesParams read a whole file as it is.
type FSReadBytesParams struct {
	FileRef
	// MaxBytes is an inclusive cap, above zero.
	MaxBytes int64 `json:"maxBytes"`
}

// Validate checks the name and the cap.
func (p *FSReadBytesParams) Validate() error {
	if p.MaxBytes < 1 {
		return InvalidParams("/maxBytes", "a cap is at least 1")
	}
	return p.FileRef.Validate()
}

// FSReadByteRangeParams read a part of a file.
type FSReadByteRangeParams struct {
	FileRef
	provider.ByteRange
}

// Validate checks the name and the range.
func (p *FSReadByteRangeParams) Validate() error {
	switch {
	case p.Offset < 0:
		return InvalidParams("/offset", "a negative number")
	case p.Length < 0:
		return InvalidParams("/length", "a negative number")
	}
	return p.FileRef.Validate()
}

// FSReadLinesParams read a window of a text file.
type FSReadLinesParams struct {
	FileRef
	provider.LineWindow
}

// Validate checks the name and the window. What is left out has a default.
func (p *FSReadLinesParams) Validate() error {
	switch {
	case p.Offset < 0:
		return InvalidParams("/offset", "lines are counted from 1")
	case p.Limit < 0:
		return InvalidParams("/limit", "a negative number")
	}
	return p.FileRef.Validate()
}
