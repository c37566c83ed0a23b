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

func (l *Local) ApplyPatch(ctx context.Context, f *fence.Fence, text string, o ApplyOptions) (PatchReport, error) {
	return PatchReport{}, unbuilt("applyPatch")
}
func (l *Local) DeleteFile(ctx context.Context, f *fence.Fence, t Target, o DeleteOptions) (DeleteOutcome, error) {
	return DeleteOutcome{}, unbuilt("deleteFile")
}
func (l *Local) DeletePath(ctx context.Context, f *fence.Fence, path string, o DeletePathOptions) (DeleteOutcome, error) {
	return DeleteOutcome{}, unbuilt("deletePath")
}
func (l *Local) MoveFile(ctx context.Context, f *fence.Fence, from, to Target, o MoveOptions) (MoveOutcome, error) {
	return MoveOutcome{}, unbuilt("moveFile")
}
func (l *Local) MovePath(ctx context.Context, f *fence.Fence, from, to string, o MovePathOptions) (MovePathOutcome, error) {
	return MovePathOutcome{}, unbuilt("movePath")
}
func (l *Local) CopyPath(ctx context.Context, f *fence.Fence, from, to string, o CopyPathOptions) (CopyPathOutcome, error) {
	return CopyPathOutcome{}, unbuilt("copyPath")
}
func (l *Local) MakeDir(ctx context.Context, f *fence.Fence, path string, o MakeDirOptions) (MakeDirOutcome, error) {
	return MakeDirOutcome{}, unbuilt("makeDir")
}
func (l *Local) Watch(ctx context.Context, f *fence.Fence, t Target, changed func(Change)) (Watch, error) {
	return nil, unbuilt("watch")
}
