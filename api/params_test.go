package api_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/api"
)

// What the types cannot say is checked too, and the answer names the member.
func TestParametersThatMakeNoSense(t *testing.T) {
	called := false
	h := api.HandlerFunc(func(_ context.Context, r *api.Request) (any, error) {
		if r.Method == api.Initialize.Name {
			return api.InitializeResult{ProtocolVersion: "1"}, nil
		}
		called = true
		return nil, api.ErrNotHandled
	})
	s := serve(t, h, api.Options{})
	p := s.open(t)
	for _, tc := range []struct{ method, params, member string }{
		{"session/open", `{}`, "/workspace"},
		{"session/open", `{"workspace":"/w","mode":"open"}`, "/mode"},
		{"session/open", `{"workspace":"/w","mode":"Read-Only"}`, "/mode"},
		{"session/open", `{"workspace":"/w","network":"some"}`, "/network"},
		{"session/open", `{"workspace":"/w","onDisconnect":"stay"}`, "/onDisconnect"},
		{"session/open", `{"workspace":"/w","detachedTtlMs":-1}`, "/detachedTtlMs"},
		{"session/open", `{"workspace":"/w","scratch":{"autoClean":"never"}}`, "/scratch/autoClean"},
		{"session/open", `{"workspace":"/w","scratch":{"sibling":"x"}}`, "/scratch/sibling"},
		{"session/open", `{"workspace":"/w","policies":"git"}`, "/policies"},
		{"session/open", `{"workspace":"/w","policies":[5]}`, "/policies/0"},
		{"session/open", `{"workspace":"/w","policies":[""]}`, "/policies/0"},
		{"session/open", `{"workspace":"/w","policies":[{"a":1,"a":2}]}`, "/policies/0/a"},
		{"session/open", `{"workspace":["/w"]}`, "/workspace"},
		{"session/setMode", `{"sessionId":"s","mode":""}`, "/mode"},
		{"session/grant", `{"sessionId":"s","path":"/p","access":"write","scope":"always"}`, "/scope"},
		{"session/grant", `{"sessionId":"s","path":"/p","access":"w","scope":"once"}`, "/access"},
		{"session/grant", `{"sessionId":"s","path":"/p","access":"write"}`, "/scope"},
		{"turn/end", `{"sessionId":"s","turnId":"t","outcome":"done"}`, "/outcome"},
		{"fs/stat", `{"sessionId":"s","target":{"targetKey":"","displayPath":"d"}}`, "/target/targetKey"},
		{"fs/stat", `{"sessionId":"s","cwd":"/c","target":{"targetKey":"k","displayPath":"d"}}`, "/cwd"},
		{"fs/writeText", `{"sessionId":"s","path":"p"}`, "/content"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","expected":{}}`, "/expected/kind"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","expected":{"kind":"always"}}`, "/expected/kind"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","expected":{"kind":"replaceIfVersion"}}`, "/expected/version"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","expected":{"kind":"createIfAbsent","version":"v"}}`, "/expected/version"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","mode":512}`, "/mode"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","mode":-1}`, "/mode"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","sandboxPolicy":{"mode":"read-only","workspaceRoot":"rel"}}`, "/sandboxPolicy/workspaceRoot"},
		{"fs/writeText", `{"sessionId":"s","path":"p","content":"c","sandboxPolicy":{}}`, "/sandboxPolicy/mode"},
		{"fs/editText", `{"sessionId":"s","path":"p","edit":{"oldString":"a","newString":"b"},"expected":{"version":""}}`, "/expected/version"},
		{"fs/editText", `{"sessionId":"s","path":"p","edit":{"oldString":"a","newString":"b"},"sandboxPolicy":{"mode":"read-only","workspaceRoot":"rel"}}`, "/sandboxPolicy/workspaceRoot"},
		{"fs/contains", `{"sessionId":"s","parent":{"targetKey":"","displayPath":"d"},"child":{"targetKey":"k","displayPath":"d"}}`, "/parent/targetKey"},
		{"fs/contains", `{"sessionId":"s","parent":{"targetKey":"k","displayPath":"d"},"child":{"targetKey":"","displayPath":"d"}}`, "/child/targetKey"},
		{"fs/contains", `{"sessionId":"s","parent":{"targetKey":"k","displayPath":"d"}}`, "/child"},
		{"fs/processPathFromHostPath", `{"sessionId":"s"}`, "/path"},
		{"fs/processPath", `{"sessionId":"s","path":"p","target":{"targetKey":"k","displayPath":"d"}}`, "/target"},
		{"fs/fileUrl", `{"sessionId":"s","url":"p"}`, "/url"},
		{"fs/listDir", `{"sessionId":"s","path":"p","limit":-1}`, "/limit"},
		{"fs/listDir", `{"sessionId":"s","path":"p","after":"/?"}`, "/after"},
		{"fs/listDir", `{"sessionId":"s","path":"p","after":"/"}`, "/after"},
		{"fs/streamText", `{"sessionId":"s","path":"p","chunkBytes":-1}`, "/chunkBytes"},
		{"fs/streamText", `{"sessionId":"s","path":"p","chunkBytes":3}`, "/chunkBytes"},
		{"fs/streamText", `{"sessionId":"s","path":"p","chunkBytes":1048577}`, "/chunkBytes"},
		{"fs/streamText", `{"sessionId":"s","path":"p","window":-1}`, "/window"},
		{"fs/streamText", `{"sessionId":"s","path":"p","stop":true}`, "/streamId"},
		{"fs/streamText", `{"sessionId":"s","streamId":"i"}`, "/window"},
		{"fs/streamText", `{"sessionId":"s","streamId":"i","window":1,"stop":true}`, "/window"},
		{"fs/streamText", `{"sessionId":"s","path":"p","streamId":"i","window":1}`, "/path"},
		{"fs/streamText", `{"sessionId":"s","cwd":"/c","streamId":"i","window":1}`, "/cwd"},
		{"fs/streamText", `{"sessionId":"s","target":{"targetKey":"k","displayPath":"d"},"streamId":"i","window":1}`, "/target"},
		{"fs/streamText", `{"sessionId":"s","streamId":"i","window":1,"chunkBytes":9}`, "/chunkBytes"},
		{"fs/readBytes", `{"sessionId":"s","path":"p"}`, "/maxBytes"},
		{"fs/readBytes", `{"sessionId":"s","path":"p","maxBytes":0}`, "/maxBytes"},
		{"fs/readByteRange", `{"sessionId":"s","path":"p","offset":0}`, "/length"},
		{"fs/readByteRange", `{"sessionId":"s","path":"p","offset":-1,"length":0}`, "/offset"},
		{"fs/readByteRange", `{"sessionId":"s","path":"p","offset":0,"length":-1}`, "/length"},
		{"fs/readByteRange", `{"sessionId":"s","path":"p","offset":1.5,"length":1}`, "/offset"},
		{"fs/readLines", `{"sessionId":"s","path":"p","offset":-1}`, "/offset"},
		{"fs/readLines", `{"sessionId":"s","path":"p","limit":-1}`, "/limit"},
		{"fs/patchText", `{"sessionId":"s","path":"p"}`, "/hunks"},
		{"fs/patchText", `{"sessionId":"s","path":"p","hunks":[{"oldLines":["a"]}]}`, "/hunks/0/newLines"},
		{"fs/patchText", `{"sessionId":"s","path":"p","hunks":[{"oldLines":null,"newLines":[]}]}`, "/hunks/0/oldLines"},
		{"fs/patchText", `{"sessionId":"s","path":"p","hunks":[{"lineNumber":-1,"oldLines":[],"newLines":[]}]}`, "/hunks/0/lineNumber"},
		{"fs/patchText", `{"sessionId":"s","path":"p","hunks":[{"old":[]}]}`, "/hunks/0/old"},
		{"fs/patchText", `{"sessionId":"s","path":"p","hunks":[],"expected":{"version":""}}`, "/expected/version"},
		{"fs/applyPatch", `{"sessionId":"s"}`, "/patch"},
		{"fs/applyPatch", `{"sessionId":"s","patch":"","compat":"git"}`, "/compat"},
		{"fs/applyPatch", `{"sessionId":"s","patch":"","path":"p"}`, "/path"},
		{"fs/applyPatch", `{"sessionId":"s","patch":"","sandboxPolicy":{"mode":"read-only","workspaceRoot":"rel"}}`, "/sandboxPolicy/workspaceRoot"},
		{"fs/deleteFile", `{"sessionId":"s","path":"p","expected":{"version":""}}`, "/expected/version"},
		{"fs/deleteFile", `{"sessionId":"s","path":"p","recursive":true}`, "/recursive"},
		{"fs/deletePath", `{"sessionId":"s","path":"p","links":"follow"}`, "/links"},
		{"fs/deletePath", `{"sessionId":"s","path":"p","expected":{"version":""}}`, "/expected/version"},
		{"fs/moveFile", `{"sessionId":"s","path":"p"}`, "/destination"},
		{"fs/moveFile", `{"sessionId":"s","path":"p","destination":5}`, "/destination"},
		{"fs/moveFile", `{"sessionId":"s","path":"p","destination":{"targetKey":"","displayPath":"d"}}`, "/destination/targetKey"},
		{"fs/moveFile", `{"sessionId":"s","path":"p","destination":{"targetKey":"k","displayPath":"d","x":1}}`, "/destination/x"},
		{"fs/moveFile", `{"sessionId":"s","path":"p","destination":"d","expectedSource":{"version":""}}`, "/expectedSource/version"},
		{"fs/moveFile", `{"sessionId":"s","path":"p","destination":"d","expectedDestination":{"kind":"any"}}`, "/expectedDestination/kind"},
		{"fs/moveFile", `{"sessionId":"s","path":"p","destination":"d","hunks":[{}]}`, "/hunks/0/oldLines"},
		{"fs/movePath", `{"sessionId":"s","path":"p"}`, "/destination"},
		{"fs/movePath", `{"sessionId":"s","path":"p","destination":{"targetKey":"k","displayPath":"d"}}`, "/destination"},
		{"fs/copyPath", `{"sessionId":"s","path":"p","destination":"d","recursive":"yes"}`, "/recursive"},
		{"fs/makeDir", `{"sessionId":"s","path":"p","mode":448}`, "/mode"},
		{"fs/watch", `{"sessionId":"s","path":"p","recursive":true}`, "/recursive"},
		{"fs/unwatch", `{"sessionId":"s"}`, "/watchId"},
		{"fs/observed", `{"path":"p"}`, "/sessionId"},
		{"trash/list", `{"sessionId":"s","all":1}`, "/all"},
		{"trash/list", `{"workspace":"w"}`, "/workspace"},
		{"trash/restore", `{}`, "/id"},
		{"trash/restore", `{"id":"a","processId":"p"}`, "/id"},
		{"trash/restore", `{"processId":"p","sessionId":"s","destination":"/d"}`, "/destination"},
		{"trash/restore", `{"id":"a","destination":"d"}`, "/destination"},
		{"trash/restore", `{"id":"a","overwrite":true}`, "/overwrite"},
		{"trash/empty", `{}`, "/ids"},
		{"trash/empty", `{"orphans":true}`, "/ids"},
		{"trash/empty", `{"ids":[]}`, "/ids"},
		{"trash/empty", `{"ids":["a"],"olderThanDays":1}`, "/ids"},
		{"trash/empty", `{"ids":["a"],"orphans":true}`, "/orphans"},
		{"trash/empty", `{"olderThanDays":-1}`, "/olderThanDays"},
		{"trash/empty", `{"olderThanDays":36501}`, "/olderThanDays"},
		{"trash/empty", `{"olderThanDays":0.5}`, "/olderThanDays"},
		{"trash/empty", `{"sessionId":"s","olderThanDays":0}`, "/sessionId"},
		{"scratch/write", `{"sessionId":"s","name":"n"}`, "/content"},
		{"scratch/write", `{"sessionId":"s","name":"n","content":"","data":""}`, "/content"},
		{"scratch/write", `{"sessionId":"s","name":"n","data":"not base64"}`, "/data"},
		{"process/start", `{"sessionId":"s"}`, "/argv"},
		{"process/start", `{"sessionId":"s","argv":[]}`, "/argv"},
		{"process/start", `{"sessionId":"s","argv":["a"],"command":"b"}`, "/argv"},
		{"process/start", `{"sessionId":"s","argv":[""]}`, "/argv/0"},
		{"process/start", `{"sessionId":"s","argv":["a"],"timeoutMs":-1}`, "/timeoutMs"},
		{"process/start", `{"sessionId":"s","argv":["a"],"maxOutputBytes":-1}`, "/maxOutputBytes"},
		{"process/start", `{"sessionId":"s","argv":["a"],"onExit":"stay"}`, "/onExit"},
		{"process/start", `{"sessionId":"s","argv":["a"],"env":{"A":1}}`, "/env/A"},
		{"process/start", `{"sessionId":"s","argv":["a"],"env":{"A":"1","A":"2"}}`, "/env/A"},
		{"process/start", `{"sessionId":"s","argv":["a"],"tty":{"cols":80}}`, "/tty/rows"},
		{"process/start", `{"sessionId":"s","argv":["a"],"tty":{"cols":65536,"rows":1}}`, "/tty/cols"},
		{"process/start", `{"sessionId":"s","argv":["a"],"sandboxPolicy":{"mode":"read-only","workspaceRoot":"rel"}}`, "/sandboxPolicy/workspaceRoot"},
		{"process/read", `{"processId":"p","afterSeq":-1}`, "/afterSeq"},
		{"process/read", `{"processId":"p","maxBytes":-1}`, "/maxBytes"},
		{"process/read", `{"processId":"p","waitMs":-1}`, "/waitMs"},
		{"process/write", `{"processId":"p"}`, "/data"},
		{"process/write", `{"processId":"p","data":"AA"}`, "/data"},
		{"process/write", `{"processId":"p","data":[1,2]}`, "/data"},
		{"process/resize", `{"processId":"p","cols":0,"rows":1}`, "/cols"},
		{"process/resize", `{"processId":"p","cols":1,"rows":0}`, "/rows"},
		{"process/terminate", `{"processId":"p","graceMs":-1}`, "/graceMs"},
		{"process/wait", `{"processId":"p","timeoutMs":-1}`, "/timeoutMs"},
		{"process/wait", `{"processId":"p","timeoutMs":true}`, "/timeoutMs"},
		{"events/subscribe", `{"after":{"epoch":"e"}}`, "/after/seq"},
		{"events/subscribe", `{"after":{"epoch":"e","seq":-1}}`, "/after/seq"},
		{"events/subscribe", `{"types":["fs.everything"]}`, "/types"},
		{"session/list", `{"all":true}`, "/all"},
	} {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, tc.method, tc.params))
		got := p.recv()
		if !strings.HasPrefix(got, errorOf("1", -32602)) || !strings.HasSuffix(got, `"data":{"code":"INVALID_PARAMS","member":"`+tc.member+`"}}}`) {
			t.Errorf("%s %s\ngot  %s\nwant %s", tc.method, tc.params, got, tc.member)
		}
	}
	if called {
		t.Error("the handler was asked all the same")
	}
}

// No text of a refusal repeats what a client sent in a value: it may be the
// content of a file or a token.
func TestRefusalsDoNotRepeatValues(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	p := s.open(t)
	for _, params := range []string{
		`{"sessionId":"s","path":"p","content":{"secret":1}}`, `{"sessionId":"s","path":"p","content":"secret","x":1}`,
		`{"sessionId":"secret","path":"p"}`, `{"sessionId":"s","path":"p","content":"c","mode":"secret"}`,
		`{"sessionId":"s","path":"p","content":"secret","content":"secret"}`,
	} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"fs/writeText","params":` + params + `}`)
		if got := p.recv(); !strings.HasPrefix(got, errorOf("1", -32602)) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", params, got)
		}
	}
}

func TestMux(t *testing.T) {
	m := api.NewMux()
	if got := len(m.Missing()); got != len(api.Methods()) {
		t.Fatalf("%d of %d are missing", got, len(api.Methods()))
	}
	api.On(m, api.TurnBegin, func(_ context.Context, _ *api.Request, p *api.SessionRef) (api.TurnBeginResult, error) {
		return api.TurnBeginResult{TurnID: p.SessionID + "1"}, nil
	})
	if got := m.Missing(); len(got) != len(api.Methods())-1 || strings.Contains(strings.Join(got, " "), "turn/begin") {
		t.Fatal(got)
	}
	r, err := m.Handle(context.Background(), &api.Request{Method: "turn/begin", Params: &api.SessionRef{SessionID: "s"}})
	if err != nil || r != (api.TurnBeginResult{TurnID: "s1"}) {
		t.Fatal(r, err)
	}
	for _, r := range []*api.Request{{Method: "turn/begin", Params: &api.Empty{}}, {Method: "turn/begin"}, {Method: "x"}} {
		if _, err := m.Handle(context.Background(), r); err != api.ErrNotHandled {
			t.Fatal(err)
		}
	}
}

// Every counter has a name of its own.
func TestCounters(t *testing.T) {
	var c api.Counters
	v := reflect.ValueOf(&c).Elem()
	snapshot := c.Snapshot()
	if len(snapshot) != v.NumField() {
		t.Fatalf("%d names for %d counters", len(snapshot), v.NumField())
	}
	c.Busy.Add(3)
	if b, err := json.Marshal(c.Snapshot(), json.Deterministic(true)); err != nil || !strings.Contains(string(b), `"busy":3`) {
		t.Fatal(string(b), err)
	}
}
