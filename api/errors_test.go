package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/api"
	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/patch"
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/scratch"
	"github.com/wattle-dev/wattle/trash/record"
)

func TestErrorsTravel(t *testing.T) {
	denial := &fence.Denial{Code: fence.CodeSandboxDenied, Path: "/etc/x", Requested: "../etc/x", Access: fence.Write, Mode: fence.ReadOnly,
		Rule: fence.RuleReadOnly, RuleSource: "mode", WritableRoots: []string{}, Hint: "h", Verdict: fence.VerdictFence, Evidence: fence.EvidenceDecision}
	denialJSON, err := json.Marshal(denial)
	if err != nil {
		t.Fatal(err)
	}
	with := func(object []byte, members string) string {
		return string(object[:len(object)-1]) + "," + members + "}"
	}
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	misfit := &patch.Failure{HunkLineNumber: 3, Stage: patch.StageOldLines, SearchStart: 1, Pattern: []string{"a"}}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"ours", api.NewError(api.CodeSessionNotFound, "no session", "sessionId", "S", "empty", ""),
			`{"code":-32014,"message":"no session","data":{"code":"SESSION_NOT_FOUND","sessionId":"S"}}`},
		{"ours, wrapped", fmt.Errorf("x: %w", api.NewError(api.CodeTurnActive, "m")), `{"code":-32014,"message":"m","data":{"code":"TURN_ACTIVE"}}`},
		{"denial", denial, `{"code":-32010,"message":"write /etc/x denied in read-only (read only); h","data":` + string(denialJSON) + `}`},
		{"denial below a file error", &provider.Error{Code: provider.CodeSandboxDenied, Op: "writeText", Path: "x", Cause: denial},
			`{"code":-32010,"message":"writeText x: denied in read-only (read only); h","data":` + with(denialJSON, `"op":"writeText","displayPath":"x"`) + `}`},
		{"denial of a delete", &provider.Error{Code: provider.CodeSandboxDenied, Op: "deletePath", Path: "x", Outcome: record.Rejected, Reason: record.ReasonProtected, Cause: denial},
			`{"code":-32010,"message":"deletePath x: denied in read-only (read only); h","data":` + with(denialJSON, `"op":"deletePath","displayPath":"x","outcome":"rejected","reason":"protected_target"`) + `}`},
		{"trash", &record.Error{Code: record.CodeUnknown, Outcome: record.Unknown, Reason: record.ReasonOperationUnknown, Op: "put", Path: "x", Errno: "EIO", Syscall: "renameat2",
			Entry: &record.Entry{ID: "T", TrashDir: "/t", Name: "x", Type: "file", State: record.OK}, Cause: syscall.EIO},
			`{"code":-32013,"message":"put x: input/output error","data":{"code":"TRASH_UNKNOWN","op":"put","path":"x","errno":"EIO","syscall":"renameat2","outcome":"unknown","reason":"trash_operation_unknown","entry":{"id":"T","trashDir":"/t","name":"x","type":"file","state":"ok"}}}`},
		{"trash below a file error", &provider.Error{Code: record.CodeUnavailable, Op: "deleteFile", Path: "x", Outcome: record.Failed, Cause: &record.Error{Code: record.CodeUnavailable, Reason: record.ReasonBackend, Op: "put"}},
			`{"code":-32013,"message":"deleteFile x: put: TRASH_UNAVAILABLE","data":{"code":"TRASH_UNAVAILABLE","op":"deleteFile","path":"x","outcome":"failed"}}`},
		{"hunk", &provider.Error{Code: provider.CodePatchMismatch, Op: "patchText", Path: "x", Detail: "d", Cause: misfit},
			`{"code":-32010,"message":` + quote("patchText x: d: "+misfit.Error()) + `,"data":{"code":"FS_PATCH_MISMATCH","op":"patchText","path":"x","hunk":{"hunkLineNumber":3,"stage":"oldLines","searchStart":1,"pattern":["a"]}}}`},
		{"patch", &provider.Error{Code: provider.CodeStaleVersion, Op: "applyPatch", Path: "x", Cause: &provider.PatchError{Report: provider.PatchReport{Operations: []provider.ApplyOperation{}}, Cause: errors.New("gone")}},
			`{"code":-32010,"message":"applyPatch x: gone; nothing was changed","data":{"code":"FS_STALE_VERSION","op":"applyPatch","path":"x","report":{"operations":[],"summary":""}}}`},
		{"permission", fmt.Errorf("daemon: %w", &provider.Error{Code: provider.CodePermissionDenied, Op: "writeText", Path: "x", Errno: "EACCES", Syscall: "openat", Cause: syscall.EACCES}),
			`{"code":-32010,"message":"daemon: writeText x: permission denied","data":{"code":"FS_PERMISSION_DENIED","op":"writeText","path":"x","errno":"EACCES","syscall":"openat"}}`},
		{"path that is no text", &provider.Error{Code: provider.CodeNotFound, Op: "stat", Path: "a\xffb"},
			"{\"code\":-32010,\"message\":\"stat a\uFFFDb: FS_NOT_FOUND\",\"data\":{\"code\":\"FS_NOT_FOUND\",\"op\":\"stat\",\"path\":\"a\uFFFDb\"}}"},
		{"sandbox", &sandbox.Error{Code: sandbox.CodeUnavailable, Op: "start", Err: errors.New("no Landlock")},
			`{"code":-32011,"message":"start: no Landlock","data":{"code":"SANDBOX_UNAVAILABLE","op":"start"}}`},
		{"process", &sandbox.Error{Code: sandbox.CodeCommandNotFound, Op: "start", Err: errors.New("x")},
			`{"code":-32014,"message":"start: x","data":{"code":"PROCESS_COMMAND_NOT_FOUND","op":"start"}}`},
		{"scratch", &scratch.Error{Code: scratch.CodeReadOnly, Op: "write", Path: "a", Err: errors.New("x")},
			`{"code":-32012,"message":"scratch write a: x","data":{"code":"SCRATCH_READ_ONLY","op":"write","path":"a"}}`},
		{"policy", &fence.PolicyError{Code: fence.CodePolicyRootRefused, Path: "/", Msg: "too much"},
			`{"code":-32015,"message":"compile policy: /: too much","data":{"code":"POLICY_ROOT_REFUSED","path":"/"}}`},
		{"context", fmt.Errorf("x: %w", context.Canceled), `{"code":-32800,"message":"the call was cancelled","data":{"code":"CANCELLED"}}`},
		{"anything else says nothing", fmt.Errorf("a secret: %w", io.ErrUnexpectedEOF), `{"code":-32603,"message":"internal error","data":{"code":"INTERNAL_ERROR"}}`},
		{"a code of no family", api.NewError("WHAT_IS_THIS", "m"), `{"code":-32603,"message":"m","data":{"code":"INTERNAL_ERROR"}}`},
		{"a value that cannot be sent", api.NewError(api.CodeBusy, "m", "f", func() {}, "n", 1), `{"code":-32005,"message":"m","data":{"code":"BUSY","n":1}}`},
	}
	for _, tc := range tests {
		e := api.ErrorOf(tc.err)
		b, err := json.Marshal(e)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if string(b) != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.name, b, tc.want)
		}
	}
	if api.ErrorOf(nil) != nil {
		t.Error("no error became one")
	}
}

// Every code of a room below has a number of its family.
func TestEveryCodeHasANumber(t *testing.T) {
	for _, c := range provider.Codes {
		if n, ok := api.NumberOf(string(c)); !ok || n != -32010 {
			t.Errorf("%s: %d", c, n)
		}
	}
	for code, want := range map[string]int{
		sandbox.CodeUnavailable: -32011, sandbox.CodeStartFailed: -32014, sandbox.CodeCommandNotFound: -32014,
		sandbox.CodeInvalid: -32014, sandbox.CodeNotRunning: -32014, sandbox.CodeStdinClosed: -32014,
		fence.CodePolicyInvalid: -32015, fence.CodePolicyRootRefused: -32015, fence.CodeSandboxDenied: -32010,
		"SCRATCH_READ_ONLY": -32012, "TRASH_REFUSED": -32013, "TURN_NOT_FOUND": -32014, "WATCH_LIMIT": -32014, "SESSION_NOT_FOUND": -32014,
		api.CodeParseError: -32700, api.CodeInvalidRequest: -32600, api.CodeMethodNotFound: -32601, api.CodeInvalidParams: -32602,
		api.CodeInternal: -32603, api.CodeNotInitialized: -32002, api.CodeBusy: -32005, api.CodeCancelled: -32800,
	} {
		if n, ok := api.NumberOf(code); !ok || n != want {
			t.Errorf("%s: %d, want %d", code, n, want)
		}
	}
	if n, ok := api.NumberOf("FSX_Y"); ok {
		t.Error(n)
	}
}

func TestErrorsCompareByCode(t *testing.T) {
	err := fmt.Errorf("call: %w", api.NewError(api.CodeSessionNotFound, "a", "sessionId", "S"))
	if !errors.Is(err, api.NewError(api.CodeSessionNotFound, "b")) || errors.Is(err, api.NewError(api.CodeTurnNotFound, "a")) {
		t.Error("not by code")
	}
	for _, e := range []*api.Error{{Code: 1, Message: "m"}, {Code: 1, Message: "m", Data: []byte(`5`)}, {Code: 1, Message: "m", Data: []byte(`{"code":5}`)}} {
		if e.Stable() != "" || e.Denial() != nil || e.Error() != "1: m" {
			t.Errorf("%+v: %q", e, e.Error())
		}
	}
}
