package api

import (
	"reflect"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
	"github.com/wattle-dev/wattle/trash"
)

// Spec describes one method of the protocol.
type Spec struct {
	Name string
	// Summary is one sentence, for the OpenRPC document.
	Summary string
	// Mutates: it changes something that outlives the call. Such a call is
	// never sent twice on a client's own account.
	Mutates bool
	// Params and Result are the types that travel. Result may be a pointer,
	// whose nil is the result null.
	Params, Result reflect.Type

	newParams func() any
	shape     *shape
}

// Method is a [Spec] with its types known to the compiler.
type Method[P, R any] struct{ *Spec }

func newMethod[P, R any](name, summary string, mutates bool) Method[P, R] {
	return Method[P, R]{&Spec{
		Name: name, Summary: summary, Mutates: mutates,
		Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R](),
		newParams: func() any { return new(P) },
		shape:     shapeOf(reflect.TypeFor[P]()),
	}}
}

const (
	reads   = false
	mutates = true
)

// The methods, in the order of PROTOCOL section 2.
var (
	Initialize = newMethod[InitializeParams, InitializeResult]("initialize",
		"Begin: agree on the version and learn what this machine enforces.", reads)

	SessionOpen = newMethod[SessionOpenParams, SessionOpenResult]("session/open",
		"Open a session with a fence of its own on a workspace.", mutates)
	SessionResume = newMethod[SessionResumeParams, SessionOpenResult]("session/resume",
		"Take a session over that another connection opened.", mutates)
	SessionClose = newMethod[SessionRef, Empty]("session/close",
		"End a session: its commands end, its scratch is cleaned.", mutates)
	SessionList = newMethod[Empty, SessionListResult]("session/list",
		"List the open sessions.", reads)
	SessionGet = newMethod[SessionRef, SessionGetResult]("session/get",
		"Describe one session and its fence.", reads)
	SessionSetMode = newMethod[SessionSetModeParams, fence.View]("session/setMode",
		"Change the mode for later calls and commands.", mutates)
	SessionGrant = newMethod[SessionGrantParams, fence.View]("session/grant",
		"Allow one more path, for one call or for the session.", mutates)

	TurnBegin = newMethod[SessionRef, TurnBeginResult]("turn/begin",
		"Begin a turn.", mutates)
	TurnEnd = newMethod[TurnEndParams, TurnEndResult]("turn/end",
		"End a turn: its commands end, then its scratch is cleaned.", mutates)

	FenceStatus = newMethod[SessionRef, FenceStatusResult]("fence/status",
		"Show the fence of a session and what the kernel holds of it.", reads)
	FenceExplain = newMethod[FenceExplainParams, FenceExplainResult]("fence/explain",
		"Tell which rule decides about a path, without touching it.", reads)

	FSResolve = newMethod[FSResolveParams, provider.Target]("fs/resolve",
		"Give the identity of a path, which need not exist.", reads)
	FSStat = newMethod[FileRef, *provider.Info]("fs/stat",
		"Describe a file, following links; null when nothing is there.", reads)
	FSLstat = newMethod[FileRef, *provider.PathInfo]("fs/lstat",
		"Describe a path without following a link in the last place.", reads)
	FSProcessPath = newMethod[FileRef, FSProcessPathResult]("fs/processPath",
		"Give the canonical path that a command can open.", reads)
	FSProcessPathFromHostPath = newMethod[FSHostPathParams, FSHostPathResult]("fs/processPathFromHostPath",
		"Map an absolute path of the host into the session's world.", reads)
	FSFileURL = newMethod[FileRef, FSFileURLResult]("fs/fileUrl",
		"Give the file: URI of a file.", reads)
	FSContains = newMethod[FSContainsParams, FSContainsResult]("fs/contains",
		"Tell whether one target is another or lies below it.", reads)
	FSListDir = newMethod[FSListDirParams, FSListDirResult]("fs/listDir",
		"List a directory, or a page of it, in byte order of the names.", reads)
	FSReadText = newMethod[FSReadTextParams, provider.TextContent]("fs/readText",
		"Read a whole text file.", reads)
	FSStreamText = newMethod[FSStreamTextParams, FSStreamTextResult]("fs/streamText",
		"Read a text file of any size in pieces, which come as events.", reads)
	FSReadBytes = newMethod[FSReadBytesParams, provider.ByteContent]("fs/readBytes",
		"Read a whole file as it is.", reads)
	FSReadByteRange = newMethod[FSReadByteRangeParams, provider.ByteContent]("fs/readByteRange",
		"Read a part of a file.", reads)
	FSReadLines = newMethod[FSReadLinesParams, provider.ReadOutcome]("fs/readLines",
		"Read some lines of a text file, and how many there are.", reads)
	FSWriteText = newMethod[FSWriteTextParams, provider.WriteOutcome]("fs/writeText",
		"Make a file or replace it whole.", mutates)
	FSEditText = newMethod[FSEditTextParams, provider.EditOutcome]("fs/editText",
		"Replace literal text in a file and leave every other byte alone.", mutates)
	FSPatchText = newMethod[FSPatchTextParams, provider.PatchOutcome]("fs/patchText",
		"Apply hunks to one file, all or none.", mutates)
	FSApplyPatch = newMethod[FSApplyPatchParams, provider.PatchReport]("fs/applyPatch",
		"Apply a patch of any number of files, all or nothing unless asked otherwise.", mutates)
	FSDeleteFile = newMethod[FSDeleteFileParams, provider.DeleteOutcome]("fs/deleteFile",
		"Delete a regular file, into the trash unless permanent.", mutates)
	FSDeletePath = newMethod[FSDeletePathParams, provider.DeleteOutcome]("fs/deletePath",
		"Delete a file, a directory or a link itself, into the trash unless permanent.", mutates)
	FSMoveFile = newMethod[FSMoveFileParams, provider.MoveOutcome]("fs/moveFile",
		"Publish a file, patched on the way if asked, elsewhere and remove it here.", mutates)
	FSMovePath = newMethod[FSMovePathParams, provider.MovePathOutcome]("fs/movePath",
		"Move a file, a directory or a link itself.", mutates)
	FSCopyPath = newMethod[FSCopyPathParams, provider.CopyPathOutcome]("fs/copyPath",
		"Copy a file, a link itself, or a directory.", mutates)
	FSMakeDir = newMethod[FSMakeDirParams, provider.MakeDirOutcome]("fs/makeDir",
		"Make a directory.", mutates)
	FSWatch = newMethod[FileRef, FSWatchResult]("fs/watch",
		"Watch a file, a missing path or the entries of a directory.", mutates)
	FSUnwatch = newMethod[FSUnwatchParams, Empty]("fs/unwatch",
		"End a watch.", mutates)
	FSObserved = newMethod[FileRef, FSObservedResult]("fs/observed",
		"Tell what this session knows of a file.", reads)

	TrashList = newMethod[TrashListParams, trash.Listing]("trash/list",
		"List what is in the trash, of this workspace or all.", reads)
	TrashRestore = newMethod[TrashRestoreParams, TrashRestoreResult]("trash/restore",
		"Bring something back from the trash; never over something.", mutates)
	TrashEmpty = newMethod[TrashEmptyParams, TrashEmptyResult]("trash/empty",
		"Remove things in the trash for good.", mutates)

	ScratchCreate = newMethod[ScratchCreateParams, scratch.Created]("scratch/create",
		"Make the scratch directory, or a directory in it.", mutates)
	ScratchWrite = newMethod[ScratchWriteParams, scratch.Written]("scratch/write",
		"Write a file in scratch.", mutates)
	ScratchList = newMethod[SessionRef, scratch.ListResult]("scratch/list",
		"List scratch, at most 200 entries.", reads)
	ScratchClean = newMethod[SessionRef, scratch.Cleaned]("scratch/clean",
		"Delete scratch now; absent is success.", mutates)

	ProcessStart = newMethod[ProcessStartParams, ProcessStartResult]("process/start",
		"Start a command inside the fence.", mutates)
	ProcessRead = newMethod[ProcessReadParams, sandbox.Output]("process/read",
		"Read output of a command from a number on.", reads)
	ProcessWrite = newMethod[ProcessWriteParams, ProcessWriteResult]("process/write",
		"Write to the standard input of a command.", mutates)
	ProcessCloseStdin = newMethod[ProcessRef, Empty]("process/closeStdin",
		"Close the standard input of a command.", mutates)
	ProcessResize = newMethod[ProcessResizeParams, Empty]("process/resize",
		"Change the size of a command's terminal.", mutates)
	ProcessSignal = newMethod[ProcessSignalParams, Empty]("process/signal",
		"Send a signal to a command.", mutates)
	ProcessTerminate = newMethod[ProcessTerminateParams, Empty]("process/terminate",
		"End a command and its whole tree.", mutates)
	ProcessWait = newMethod[ProcessWaitParams, sandbox.State]("process/wait",
		"Wait for the final state of a command.", reads)
	ProcessList = newMethod[SessionRef, ProcessListResult]("process/list",
		"List the commands of a session.", reads)

	EventsSubscribe = newMethod[EventsSubscribeParams, EventsSubscribeResult]("events/subscribe",
		"Get events on this connection, from a place in the stream or from now.", reads)
	EventsUnsubscribe = newMethod[Empty, Empty]("events/unsubscribe",
		"Get no more events on this connection.", reads)

	ServerStatus = newMethod[Empty, ServerStatusResult]("server/status",
		"Show uptime, sessions, commands, counters and sizes.", reads)
)

var table = []*Spec{
	Initialize.Spec,
	SessionOpen.Spec, SessionResume.Spec, SessionClose.Spec, SessionList.Spec, SessionGet.Spec, SessionSetMode.Spec, SessionGrant.Spec,
	TurnBegin.Spec, TurnEnd.Spec,
	FenceStatus.Spec, FenceExplain.Spec,
	FSResolve.Spec, FSProcessPath.Spec, FSProcessPathFromHostPath.Spec, FSFileURL.Spec, FSContains.Spec,
	FSStat.Spec, FSLstat.Spec, FSListDir.Spec,
	FSReadText.Spec, FSStreamText.Spec, FSReadBytes.Spec, FSReadByteRange.Spec, FSReadLines.Spec,
	FSWriteText.Spec, FSEditText.Spec, FSPatchText.Spec, FSApplyPatch.Spec,
	FSDeleteFile.Spec, FSDeletePath.Spec, FSMoveFile.Spec, FSMovePath.Spec, FSCopyPath.Spec, FSMakeDir.Spec,
	FSWatch.Spec, FSUnwatch.Spec, FSObserved.Spec,
	TrashList.Spec, TrashRestore.Spec, TrashEmpty.Spec,
	ScratchCreate.Spec, ScratchWrite.Spec, ScratchList.Spec, ScratchClean.Spec,
	ProcessStart.Spec, ProcessRead.Spec, ProcessWrite.Spec, ProcessCloseStdin.Spec, ProcessResize.Spec, ProcessSignal.Spec, ProcessTerminate.Spec, ProcessWait.Spec, ProcessList.Spec,
	EventsSubscribe.Spec, EventsUnsubscribe.Spec,
	ServerStatus.Spec,
}

var byName = func() map[string]*Spec {
	m := make(map[string]*Spec, len(table))
	for _, s := range table {
		m[s.Name] = s
	}
	return m
}()

// Methods are all methods, in the order of PROTOCOL section 2.
func Methods() []Spec {
	out := make([]Spec, len(table))
	for i, s := range table {
		out[i] = *s
	}
	return out
}

func methodByName(name string) *Spec { return byName[name] }
