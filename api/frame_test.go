package api

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// This file is inside the package: what it feeds never reaches the outside as
// such.

var frameSeeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"fs/stat","params":{"sessionId":"s","path":"p"}}`,
	`[{"jsonrpc":"2.0","id":"a","method":"x"},{"jsonrpc":"2.0","method":"y","params":{}},1,{}]`,
	`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`,
	`{"id":{"a":[1,2]},"jsonrpc":"1.0"}`, `[]`, `[[]]`, `null`, ` 5 `, `"\ud83d\ude00"`, `"\ud83d"`, "\xff", `{"a":1}x`, `{"a":1,"a":2}`, `[{"id":1},`,
	strings.Repeat("[", 70), `{"jsonrpc":"2.0","id":1e400,"method":"m","params":[]}`,
}

// Whatever arrives: no panic, an id is echoed only as it was spelled, and what
// is accepted is valid JSON within the limits.
func FuzzFrame(f *testing.F) {
	for _, s := range frameSeeds {
		f.Add([]byte(s))
	}
	lim := DefaultLimits()
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		fr, err := parseFrame(text, lim)
		if !bytes.Equal(text, before) {
			t.Fatal("the text was changed")
		}
		if err != nil {
			if err.Code != numParse && err.Code != numInvalidRequest || err.Stable() == "" {
				t.Fatalf("refused with %+v", err)
			}
			if len(fr.messages) != 0 {
				t.Fatal("a refused frame has messages")
			}
			return
		}
		if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("%q was accepted", text)
		}
		if n := len(fr.messages); n == 0 || n > lim.MaxBatch || !fr.batch && n != 1 {
			t.Fatalf("%d messages", n)
		}
		for _, m := range fr.messages {
			if m.id != nil && (!bytes.Contains(text, m.id) || !validID(m.id) || !m.id.IsValid()) {
				t.Fatalf("the id %q", m.id)
			}
			if m.params != nil && m.params.Kind() != '{' {
				t.Fatalf("the parameters %q", m.params)
			}
			switch m.kind {
			case kindInvalid:
				if m.err == nil {
					t.Fatal("invalid without a reason")
				}
				if b := errorFrame(nullID, m.err); !jsontext.Value(b).IsValid() {
					t.Fatalf("the answer %q", b)
				}
			case kindCall:
				if m.id == nil || m.err != nil {
					t.Fatalf("%+v", m)
				}
				if b := resultFrame(m.id, []byte(`{}`)); !jsontext.Value(b).IsValid() {
					t.Fatalf("the answer %q", b)
				}
			case kindNotification, kindResponse:
				if m.id != nil || m.err != nil {
					t.Fatalf("%+v", m)
				}
			}
		}
	})
}

// The parameters of every method: no panic, a refusal names a member or none,
// and what is accepted survives a round trip.
func FuzzParams(f *testing.F) {
	names := make([]string, 0, len(table))
	for _, s := range table {
		names = append(names, s.Name)
	}
	seeds := []string{`{}`, `{"sessionId":"s"}`, `{"sessionId":"s","path":"p","content":"c","expected":{"kind":"createIfAbsent"},"mode":420}`,
		`{"sessionId":"s","edit":{"oldString":"a","newString":"b"},"target":{"targetKey":"k","displayPath":"d"},"expected":{"version":"v"}}`,
		`{"workspace":"/w","mode":"read-only","policies":["git",{"a":[{}]}],"network":"off","scratch":{"autoClean":"turn"},"detachedTtlMs":5}`,
		`{"processId":"p","data":"AA==","writeId":"w"}`, `{"sessionId":"s","argv":["a"],"env":{"A":"b"},"tty":{"cols":1,"rows":2},"onExit":"keep"}`,
		`{"protocolVersion":"1","client":{"name":"a","version":"b"}}`, `{"after":{"epoch":"e","seq":9},"types":["gap"]}`, `{"a":1,"a":2}`, `{"sessionId":null}`, `{"sessionId":1e9}`}
	for i := range names {
		for _, s := range seeds {
			f.Add(uint8(i), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, raw []byte) {
		spec := table[int(which)%len(table)]
		v := jsontext.Value(raw)
		if v.Kind() != '{' || !v.IsValid(jsontext.AllowDuplicateNames(true)) || tooDeep(raw, 64) {
			return // the frame would have been refused
		}
		params := spec.newParams()
		if err := decodeParams(v, spec.shape, params); err != nil {
			if err.Code != numInvalidParams || err.Stable() != CodeInvalidParams || !jsontext.Value(errorFrame(nullID, err)).IsValid() {
				t.Fatalf("%s %q: refused with %+v", spec.Name, raw, err)
			}
			return
		}
		if !v.IsValid() {
			t.Fatalf("%s %q: a repeated name was accepted", spec.Name, raw)
		}
		back, err := json.Marshal(params)
		if err != nil {
			t.Fatalf("%s %q: %v", spec.Name, raw, err)
		}
		again := spec.newParams()
		if err := decodeParams(back, spec.shape, again); err != nil {
			t.Fatalf("%s %q became %q: %v", spec.Name, raw, back, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, back) {
			t.Fatalf("%s %q: %q became %q (%v)", spec.Name, raw, back, twice, err)
		}
	})
}

func TestDepth(t *testing.T) {
	for text, want := range map[string]bool{
		`[[[]]]`: false, `[[[[]]]]`: true, `{"a":{"b":{}}}`: false, `{"a":{"b":[[]]}}`: true,
		`["[[[[[["]`: false, `["\"[[[[[["]`: false, `["\\",[[[]]]]`: true, `"\`: false, `"`: false, ``: false, `]]]]`: false, `[][][][]`: false,
	} {
		if got := tooDeep([]byte(text), 3); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
