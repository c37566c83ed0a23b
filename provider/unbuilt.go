package provider

import (
	"context"

	"github.com/wattle-dev/wattle/fence"
)

// Scaffold of branch b: whoever builds a method removes it here. The file must
// be gone before the branch is merged into main.

func unbuilt(op string) error { return &Error{Code: CodeIOError, Op: op, Detail: "not built yet"} }

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
func (l *Local) MakeDir(ctx context.Context, f *fence.Fence, path string, o MakeDirOptions) (MakeDirOutcome, error) {
	return MakeDirOutcome{}, unbuilt("makeDir")
}
func (l *Local) Watch(ctx context.Context, f *fence.Fence, t Target, changed func(Change)) (Watch, error) {
	return nil, unbuilt("watch")
}
