package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// Scaffold of branch b: whoever builds a method removes it here. The file must
// be gone before the branch is merged into main.

func unbuilt(op string) error { return &Error{Code: CodeIOError, Op: op, Detail: "not built yet"} }

func (l *Local) StreamText(ctx context.Context, f *fence.Fence, t Target) (TextStream, error) {
	return nil, unbuilt("streamText")
}
func (l *Local) ReadBytes(ctx context.Context, f *fence.Fence, t Target, maxBytes int64) (ByteContent, error) {
	return ByteContent{}, unbuilt("readBytes")
}
func (l *Local) ReadByteRange(ctx context.Context, f *fence.Fence, t Target, r ByteRange) (ByteContent, error) {
	return ByteContent{}, unbuilt("readByteRange")
}
func (l *Local) ReadLines(ctx context.Context, f *fence.Fence, t Target, w LineWindow) (ReadOutcome, error) {
	return ReadOutcome{}, unbuilt("readLines")
}
func (l *Local) ProcessPathFromHostPath(host string) (string, bool) { return "", false }
func (l *Local) MovePath(ctx context.Context, f *fence.Fence, from, to string, o MovePathOptions) (MovePathOutcome, error) {
	return MovePathOutcome{}, unbuilt("movePath")
}
func (l *Local) CopyPath(ctx context.Context, f *fence.Fence, from, to string, o CopyPathOptions) (CopyPathOutcome, error) {
	return CopyPathOutcome{}, unbuilt("copyPath")
}
func (l *Local) Watch(ctx context.Context, f *fence.Fence, t Target, changed func(Change)) (Watch, error) {
	return nil, unbuilt("watch")
}
