package api

import "github.com/wattle-dev/wattle/provider"

// FSOp is what a call did to a file.
type FSOp string

const (
	OpCreate FSOp = "create"
	OpUpdate FSOp = "update"
	OpEdit   FSOp = "edit"
	OpPatch  FSOp = "patch"
	OpDelete FSOp = "delete"
	OpMove   FSOp = "move"
	OpCopy   FSOp = "copy"
	OpMkdir  FSOp = "mkdir"
)

// FSChangedData is one change. Path is canonical. From is where a moved or
// copied file came from.
type FSChangedData struct {
	Op      FSOp             `json:"op"`
	Path    string           `json:"path"`
	Version provider.Version `json:"version,omitzero"`
	From    string           `json:"from,omitzero"`
}

// FSChunkData is a piece of a stream. Seq counts from 1 within it.
type FSChunkData struct {
	StreamID string `json:"streamId"`
	Seq      int64  `json:"seq"`
	Text     string `json:"text"`
}

// FSStreamEndData is the last of a stream. Version is that of the whole read,
// as readText gives it; with an error there is none.
type FSStreamEndData struct {
	StreamID string           `json:"streamId"`
	Version  provider.Version `json:"version,omitzero"`
	Error    *Error           `json:"error,omitzero"`
}

// WatchChangedData says where something may have changed. Name is the entry of
// a watched directory.
type WatchChangedData struct {
	WatchID string `json:"watchId"`
	Path    string `json:"path"`
	Name    string `json:"name,omitzero"`
}

// WatchOverflowData names the watch.
type WatchOverflowData struct {
	WatchID string `json:"watchId"`
}

// WatchErrorData says why a watch may miss changes from now on.
type WatchErrorData struct {
	WatchID string `json:"watchId"`
	Code    string `json:"code"`
	Message string `json:"message"`
}
