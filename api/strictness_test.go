package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/wattle-dev/wattle/api"
)

// errorOf is the beginning of an error reply.
func errorOf(id string, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,`, id, code)
}

const (
	read   = `"method":"fs/readText","params":{"sessionId":"s","path":"p"}`
	readOK = `"result":{"text":"p","version":"v","bom":false}}`
)

func resultOf(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,` + readOK }

// The table of facts/libraries section 3, with section 2 below it. Each frame
// goes over a real connection, and afterwards the connection must still work.
func TestStrictness(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	deep := func(n int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"fs/readText","params":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	batch := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"fs/readText","params":{"sessionId":"s","path":"p"}},`, n), ",") + "]"
	}
	param := func(p string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"fs/readText","params":` + p + `}`
	}
	edit := func(p string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"fs/editText","params":{"sessionId":"s","path":"p",` + p + `}}`
	}
	const invalidParams = `"data":{"code":"INVALID_PARAMS","member":"%s"}}}`

	tests := []struct {
		name, frame string
		want        string // the beginning of the reply; "" for silence
		wantEnd     string
	}{
		// Section 3.
		{"not JSON", `hello`, errorOf("null", -32700), `"data":{"code":"PARSE_ERROR"}}}`},
		{"empty frame", ``, errorOf("null", -32700), ``},
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"fs/re`, errorOf("null", -32700), ``},
		{"byte-order mark", "\ufeff{" + `"jsonrpc":"2.0","id":1,` + read + `}`, errorOf("null", -32700), ``},
		{"text after the value", `{"jsonrpc":"2.0","id":1,` + read + `} x`, errorOf("null", -32700), ``},
		{"two values", `{"jsonrpc":"2.0","id":1,` + read + `}{"jsonrpc":"2.0","id":2,` + read + `}`, errorOf("null", -32700), ``},
		{"a comment", `{"jsonrpc":"2.0",/**/"id":1,` + read + `}`, errorOf("null", -32700), ``},
		{"blanks around", " \n\t{ \"jsonrpc\" : \"2.0\" , \"id\" : 1 , " + read + " } \r\n", resultOf("1"), ``},
		{"no method", `{"jsonrpc":"2.0","id":1}`, errorOf("1", -32600), `"data":{"code":"INVALID_REQUEST"}}}`},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":1}`, errorOf("1", -32600), ``},
		{"wrong version", `{"jsonrpc":"1.0","id":1,` + read + `}`, errorOf("1", -32600), ``},
		{"version is a number", `{"jsonrpc":2.0,"id":1,` + read + `}`, errorOf("1", -32600), ``},
		{"no version", `{"id":1,` + read + `}`, errorOf("1", -32600), ``},
		{"empty batch", `[]`, errorOf("null", -32600), ``},
		{"a string", `"x"`, errorOf("null", -32600), ``},
		{"null", `null`, errorOf("null", -32600), ``},
		{"id null", `{"jsonrpc":"2.0","id":null,` + read + `}`, errorOf("null", -32600), ``},
		{"id 0", `{"jsonrpc":"2.0","id":0,` + read + `}`, resultOf("0"), ``},
		{"id is a string", `{"jsonrpc":"2.0","id":"",` + read + `}`, resultOf(`""`), ``},
		{"id with escapes", `{"jsonrpc":"2.0","id":"\u0041\/é",` + read + `}`, resultOf(`"\u0041\/é"`), ``},
		{"id is large", `{"jsonrpc":"2.0","id":123456789012345678901234567890,` + read + `}`, resultOf("123456789012345678901234567890"), ``},
		{"id 1.5", `{"jsonrpc":"2.0","id":1.5,` + read + `}`, resultOf("1.5"), ``},
		{"id -0.0e+1", `{"jsonrpc":"2.0","id":-0.0e+1,` + read + `}`, resultOf("-0.0e+1"), ``},
		{"id is an object", `{"jsonrpc":"2.0","id":{},` + read + `}`, errorOf("null", -32600), ``},
		{"id is an array", `{"jsonrpc":"2.0","id":[1],` + read + `}`, errorOf("null", -32600), ``},
		{"id is a boolean", `{"jsonrpc":"2.0","id":true,` + read + `}`, errorOf("null", -32600), ``},
		{"params is a string", param(`"x"`), errorOf("1", -32600), ``},
		{"params is a number", param(`5`), errorOf("1", -32600), ``},
		{"params is null", param(`null`), errorOf("1", -32600), ``},
		{"params is an array", param(`["s","p"]`), errorOf("1", -32602), ``},
		{"extra member", `{"jsonrpc":"2.0","id":1,"extra":1,` + read + `}`, errorOf("1", -32600), ``},
		{"member in other case", `{"jsonrpc":"2.0","ID":1,` + read + `}`, errorOf("null", -32600), ``},
		{"duplicate member", `{"jsonrpc":"2.0","id":1,"method":"fs/stat",` + read + `}`, errorOf("1", -32600), ``},
		{"duplicate member by escape", `{"jsonrpc":"2.0","id":1,"\u006dethod":"fs/stat",` + read + `}`, errorOf("1", -32600), ``},
		{"duplicate id", `{"jsonrpc":"2.0","id":1,"id":2,` + read + `}`, errorOf("null", -32600), ``},
		{"request with result", `{"jsonrpc":"2.0","id":1,"result":1,` + read + `}`, errorOf("1", -32600), ``},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"fs/nothing"}`, errorOf("1", -32601), `"data":{"code":"METHOD_NOT_FOUND"}}}`},
		{"method in other case", `{"jsonrpc":"2.0","id":1,"method":"FS/readText"}`, errorOf("1", -32601), ``},
		{"method of the table that is not served", `{"jsonrpc":"2.0","id":1,"method":"session/list"}`, errorOf("1", -32601), ``},
		{"initialize again", initFrame, errorOf(`"init"`, -32600), ``},
		{"batch with a notification", `[{"jsonrpc":"2.0","id":7,` + read + `},{"jsonrpc":"2.0",` + read + `}]`, `[` + resultOf("7") + `]`, ``},
		{"batch of notifications", batch(3), ``, ``},
		{"batch with what is no request", `[1,{"jsonrpc":"2.0","id":{},"method":"x"}]`, `[` + errorOf("null", -32600), `]`},
		{"batch of 51", batch(51), errorOf("null", -32600), ``},
		{"large batch", "[" + strings.Repeat("1,", 1_000_000) + "1]", errorOf("null", -32600), ``},
		{"large batch with a broken tail", "[" + strings.Repeat("1,", 1_000_000) + "]", errorOf("null", -32700), ``},
		{"batch with a broken tail", `[{"jsonrpc":"2.0","id":7,` + read + `},`, errorOf("null", -32700), ``},
		{"response for no request", `{"jsonrpc":"2.0","id":1,"result":null}`, ``, ``},
		{"error response for no request", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, ``, ``},
		{"batch of responses", `[{"jsonrpc":"2.0","id":1,"result":null}]`, ``, ``},
		{"notification", `{"jsonrpc":"2.0",` + read + `}`, ``, ``},
		{"notification of an unknown method", `{"jsonrpc":"2.0","method":"x"}`, ``, ``},
		{"notification with wrong parameters", `{"jsonrpc":"2.0","method":"fs/readText","params":{}}`, ``, ``},
		{"notification with an array", `{"jsonrpc":"2.0","method":"fs/readText","params":[]}`, ``, ``},
		{"depth 64", deep(62), errorOf("1", -32602), ``},
		{"depth 65", deep(63), errorOf("null", -32700), ``},
		{"depth 10,000", deep(10_000), errorOf("null", -32700), ``},
		{"brackets in strings are not depth", param(`{"sessionId":"s","path":"` + strings.Repeat(`[{\"`, 200) + `"}`), `{"jsonrpc":"2.0","id":1,"result":`, ``},
		{"panic", `{"jsonrpc":"2.0","id":1,"method":"process/signal","params":{"processId":"p","signal":"S"}}`, errorOf("1", -32603), `"message":"internal error","data":{"code":"INTERNAL_ERROR"}}}`},
		{"error without a code", `{"jsonrpc":"2.0","id":1,"method":"process/terminate","params":{"processId":"p"}}`, errorOf("1", -32603), `"message":"internal error","data":{"code":"INTERNAL_ERROR"}}}`},
		{"cancel of nothing", `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}`, ``, ``},
		{"cancel as a call", `{"jsonrpc":"2.0","id":3,"method":"$/cancelRequest","params":{"id":99}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, ``},
		{"cancel with a wrong id", `{"jsonrpc":"2.0","id":3,"method":"$/cancelRequest","params":{"id":[1]}}`, errorOf("3", -32602), ``},
		{"result null", `{"jsonrpc":"2.0","id":1,"method":"fs/stat","params":{"sessionId":"s","path":"p"}}`, `{"jsonrpc":"2.0","id":1,"result":null}`, ``},

		// Section 2: parameters.
		{"unknown member", param(`{"sessionId":"s","path":"p","x":1}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/x")},
		{"member of other case", param(`{"sessionId":"s","PATH":"p"}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/PATH")},
		{"member twice", param(`{"sessionId":"s","path":"p","path":"q"}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/path")},
		{"unknown member with an endless name", param(`{"` + strings.Repeat("x", 100_000) + `":1}`), errorOf("1", -32602), `… (100001 bytes)"}}}`},
		{"inner unknown member", edit(`"edit":{"oldString":"a","newString":"b","x":1}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/edit/x")},
		{"inner member twice", edit(`"edit":{"oldString":"a","newString":"b","newString":"c"}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/edit/newString")},
		{"inner member missing", edit(`"edit":{"oldString":"a"}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/edit/newString")},
		{"inner member null", edit(`"edit":{"oldString":"a","newString":null}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/edit/newString")},
		{"object missing", edit(`"overrideReadOnly":true`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/edit")},
		{"object null", edit(`"edit":null`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/edit")},
		{"member missing", param(`{"path":"p"}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/sessionId")},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"fs/readText"}`, errorOf("1", -32602), fmt.Sprintf(invalidParams, "/sessionId")},
		{"wrong type", param(`{"sessionId":5,"path":"p"}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/sessionId")},
		{"1.0 for an integer", param(`{"sessionId":"s","path":"p","maxBytes":1.0}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/maxBytes")},
		{"1e2 for an integer", param(`{"sessionId":"s","path":"p","maxBytes":1e2}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/maxBytes")},
		{"above int64", param(`{"sessionId":"s","path":"p","maxBytes":9223372036854775808}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/maxBytes")},
		{"null for an optional integer", param(`{"sessionId":"s","path":"p","maxBytes":null}`), resultOf("1"), ``},
		{"negative size", param(`{"sessionId":"s","path":"p","maxBytes":-1}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/maxBytes")},
		{"invalid UTF-8", param("{\"sessionId\":\"s\",\"path\":\"\xff\"}"), errorOf("null", -32700), ``},
		{"overlong UTF-8", param("{\"sessionId\":\"s\",\"path\":\"\xc0\xaf\"}"), errorOf("null", -32700), ``},
		{"surrogate in UTF-8", param("{\"sessionId\":\"s\",\"path\":\"\xed\xa0\x80\"}"), errorOf("null", -32700), ``},
		{"unpaired surrogate", param(`{"sessionId":"s","path":"\ud800"}`), errorOf("null", -32700), ``},
		{"invalid UTF-8 in a name", param("{\"sessionId\":\"s\",\"\xff\":1}"), errorOf("null", -32700), ``},
		{"control character", param("{\"sessionId\":\"s\",\"path\":\"a\nb\"}"), errorOf("null", -32700), ``},
		{"path and target", param(`{"sessionId":"s","path":"p","target":{"targetKey":"k","displayPath":"d"}}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/target")},
		{"half a target", param(`{"sessionId":"s","target":{"targetKey":"k"}}`), errorOf("1", -32602), fmt.Sprintf(invalidParams, "/target/displayPath")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := s.open(t)
			p.send(tc.frame)
			var got []string
			if tc.want != "" {
				got = append(got, p.recv())
			}
			// Whatever it was, the connection lives, and nothing else comes:
			// when all calls have ended, the next reply is that of the next call.
			p.send(`{"jsonrpc":"2.0","id":"next","method":"fs/stat","params":{"sessionId":"s","path":"p"}}`)
			const next = `{"jsonrpc":"2.0","id":"next","result":null}`
			for {
				r := p.recv()
				if r == next {
					break
				}
				got = append(got, r)
			}
			until(t, "end of all calls", func() bool { return s.count.InFlight.Load() == 0 })
			p.send(`{"jsonrpc":"2.0","id":"last","method":"$/cancelRequest","params":{"id":1}}`)
			if r := p.recv(); r != `{"jsonrpc":"2.0","id":"last","result":{}}` {
				got = append(got, r)
			}
			if tc.want == "" {
				if len(got) != 0 {
					t.Fatalf("got %q, want silence", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], tc.want) || !strings.HasSuffix(got[0], tc.wantEnd) {
				t.Fatalf("got  %q\nwant %s…%s", got, tc.want, tc.wantEnd)
			}
		})
	}
	if n := s.count.IgnoredResponses.Load(); n != 3 {
		t.Errorf("%d frames without a request were counted, want 3", n)
	}
	if n := s.count.Panics.Load(); n != 1 {
		t.Errorf("%d panics were counted, want 1", n)
	}
}

func TestInitializeFirst(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	p := s.dial(t)
	p.send(`{"jsonrpc":"2.0","id":1,` + read + `}`)
	if got := p.recv(); !strings.HasPrefix(got, errorOf("1", -32002)) {
		t.Fatal(got)
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"nothing"}`)
	if got := p.recv(); !strings.HasPrefix(got, errorOf("2", -32002)) {
		t.Fatal(got)
	}
	p.send(strings.Replace(initFrame, `"protocolVersion":"1"`, `"protocolVersion":"2"`, 1))
	if got := p.recv(); !strings.HasPrefix(got, errorOf(`"init"`, -32602)) || !strings.Contains(got, `"member":"/protocolVersion"`) {
		t.Fatal(got)
	}
	// One that failed does not open the door, one that succeeds does, also for
	// what was sent behind it without waiting.
	p.send(`[{"jsonrpc":"2.0","id":3,` + read + `},` + initFrame + `,{"jsonrpc":"2.0","id":4,` + read + `}]`)
	got := p.recv()
	if !strings.Contains(got, errorOf("3", -32002)) || !strings.Contains(got, resultOf("4")) {
		t.Fatal(got)
	}
	p2 := s.dial(t)
	p2.send(initFrame)
	p2.send(`{"jsonrpc":"2.0","id":5,` + read + `}`)
	p2.recv()
	if got := p2.recv(); got != resultOf("5") {
		t.Fatal(got)
	}
}

func TestBinaryFrame(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	for _, ready := range []bool{true, false} {
		p := s.dial(t)
		if ready {
			p = s.open(t)
		}
		if err := p.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"jsonrpc":"2.0","id":1,`+read+`}`)); err != nil {
			t.Fatal(err)
		}
		if code := p.closed(); code != api.CloseUnsupported {
			t.Fatalf("closed with %d", code)
		}
	}
}

func TestFrameLimit(t *testing.T) {
	for _, limit := range []int{0, 4096} {
		s := serve(t, newDesk(), api.Options{Limits: api.Limits{MaxFrameBytes: int64(limit)}})
		if limit == 0 {
			limit = 16 << 20
		}
		frame := func(size int) string {
			head, tail := `{"jsonrpc":"2.0","id":1,"method":"fs/readText","params":{"sessionId":"s","path":"`, `"}}`
			return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
		}
		p := s.open(t)
		p.send(frame(limit))
		if got := p.recv(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"text":"xxx`) {
			t.Fatalf("a frame of %d bytes: %.100s", limit, got)
		}
		// The write may fail half-way; the close frame must arrive all the same.
		p.ws.WriteMessage(websocket.TextMessage, []byte(frame(limit+1)))
		if code := p.closed(); code != api.CloseTooBig {
			t.Fatalf("closed with %d", code)
		}
	}
}
