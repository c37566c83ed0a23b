package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// ByteContent is the result of readBytes and readByteRange.
type ByteContent struct {
	Data []byte `json:"data"`
	// Version is that of the file that was read. A range is not a read of the
	// whole file: the version of one carries no hash.
	Version Version `json:"version"`
}

// ByteRange is a part of a file in bytes. Neither may be negative; a range at
// or past the end is empty.
type ByteRange struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// TextStream gives the text of one file piece by piece. One goroutine uses it
// at a time.
type TextStream interface {
	// Next gives the next piece, which is not empty, and io.EOF after the last
	// one. Where pieces end means nothing: they are whole characters, and up to
	// 64 KiB. FS_NOT_TEXT, FS_ABORTED and the like as readText; after an error
	// the stream stays at it.
	Next() (string, error)
	// BOM tells whether the file begins with a byte-order mark, which is no
	// part of the text. Known after the first Next.
	BOM() bool
	// Version is that of the file when it was opened, without a hash; after
	// io.EOF it is that of the whole read, as readText gives it.
	Version() Version
	// Close gives the file back; more than once is allowed. Next is FS_IO_ERROR
	// afterwards, unless it had come to its end.
	Close() error
}

// LineWindow is a part of a text file in lines (fs-contract section 8). Zero
// members are the defaults of [WindowLimits].
type LineWindow struct {
	// Offset is the first line, from 1. 0 is 1.
	Offset int `json:"offset,omitzero"`
	// Limit is how many lines; 0 is all that are allowed. More than allowed is
	// FS_TOO_LARGE with EINVAL.
	Limit int `json:"limit,omitzero"`
}

// WindowLimits are the caps of readLines, all above zero.
type WindowLimits struct {
	Lines      int // readLimit, 2000; default and maximum of LineWindow.Limit
	LineLength int // readMaxLineLength, 2000, in UTF-16 units
	// Bytes is readMaxBytes, 51200: of the texts of the lines, and one for each
	// line break between them.
	Bytes int
	// StreamMinSize is readStreamMinSize, 10 MiB, in bytes. Every file is
	// streamed. Files below this have a hash in their version in any case,
	// larger ones up to Config.EditMaxBytes, which is where edits end.
	StreamMinSize int64
}

// Line is one line of a window. Text has no line break and no line number; cut
// tells that it was longer than the cap.
type Line struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitzero"`
}

// ReadOutcome is a window on a text file (FileReadOutcome).
type ReadOutcome struct {
	Offset     int    `json:"offset"`
	Lines      []Line `json:"lines"`
	TotalLines int    `json:"totalLines"`
	// TruncatedByBytes: fewer lines than asked for, or the only one cut, because
	// of WindowLimits.Bytes. There is at least one line all the same, so that
	// the window behind it makes progress.
	TruncatedByBytes bool `json:"truncatedByBytes,omitzero"`
	// Version is that of the whole file, with its hash up to the size that
	// WindowLimits.StreamMinSize tells.
	Version Version `json:"version"`
	BOM     bool    `json:"bom,omitzero"`
	// Footer is the sentence that follows the lines when they are rendered for
	// a model; it is no part of the file (cases/edit E12).
	Footer string `json:"footer"`
}

// ListOptions is how a directory is listed.
type ListOptions struct {
	// After is a name: only names behind it, in byte order, are listed.
	After string `json:"after,omitzero"`
	// Limit bounds the entries; 0 for no other bound than the provider's own.
	// A listing with as many entries as its limit may go on after the last one.
	// Only the entries of the page are looked at, and a directory of any size
	// can be listed by pages. Below 0: FS_IO_ERROR with EINVAL.
	Limit int `json:"limit,omitzero"`
}

// Reader are the reads of the contract beside readText.
type Reader interface {
	// StreamText reads a whole text file piece by piece, by the rules of
	// readText. The file is opened at the call, whose context holds for the
	// stream too; the caller closes the stream. Section 3, streamText.
	//
	// Concurrency: takes no lock; reads one file, old or new, also while it is
	// being replaced. Waits as Stat does, once, before it gives the stream.
	StreamText(ctx context.Context, f *fence.Fence, t Target) (TextStream, error)

	// ReadBytes gives a whole file as it is. maxBytes is an inclusive cap above
	// zero: FS_TOO_LARGE above it, also when the file grows meanwhile; nothing
	// is ever truncated. Section 3, readBytes. A cap of zero or less is
	// FS_IO_ERROR with EINVAL.
	//
	// Concurrency: as ReadText.
	ReadBytes(ctx context.Context, f *fence.Fence, t Target, maxBytes int64) (ByteContent, error)

	// ReadByteRange gives a part of a file, short at its end, without holding
	// more than that part. Section 3, readByteRange. A negative offset or length
	// is FS_IO_ERROR with EINVAL.
	//
	// Concurrency: as StreamText.
	ReadByteRange(ctx context.Context, f *fence.Fence, t Target, r ByteRange) (ByteContent, error)

	// ReadLines gives a window on a text file and the exact number of its
	// lines, in memory bounded by the window on a file of any size: it reads to
	// the end and can be cancelled on the way. An offset behind the last line is
	// FS_NOT_FOUND, but for 1 in an empty file; a negative offset or limit is
	// FS_IO_ERROR with EINVAL. Section 8.
	//
	// Concurrency: as ReadText. Waits as Stat does where the version has no
	// hash.
	ReadLines(ctx context.Context, f *fence.Fence, t Target, w LineWindow) (ReadOutcome, error)

	// ProcessPathFromHostPath maps an absolute path of the host into this
	// provider's world; none when it is relative or the world is another one.
	//
	// Concurrency: pure, no I/O.
	ProcessPathFromHostPath(host string) (string, bool)
}
