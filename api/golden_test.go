package api_test

import (
	"context"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api"
)

type example struct {
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
}

func load[T any](tb testing.TB, file string) []T {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var out []T
	if err := json.Unmarshal(b, &out, json.RejectUnknownMembers(true)); err != nil {
		tb.Fatal(err)
	}
	return out
}

func compact(tb testing.TB, v jsontext.Value) string {
	tb.Helper()
	v = v.Clone()
	if err := v.Compact(); err != nil {
		tb.Fatal(err)
	}
	return string(v)
}

func specs() map[string]api.Spec {
	m := map[string]api.Spec{}
	for _, s := range api.Methods() {
		m[s.Name] = s
	}
	return m
}

// Every method of the table has an example that goes over a real connection:
// its parameters arrive as the typed value whose JSON they are, and its result
// leaves as the JSON that is written down.
func TestEveryMethodHasItsWireForm(t *testing.T) {
	table := specs()
	examples := load[example](t, "testdata/methods.json")
	type got struct {
		method string
		params any
	}
	arrived := make(chan got, 1)
	results := make(chan any, 1)
	s := serve(t, api.HandlerFunc(func(_ context.Context, r *api.Request) (any, error) {
		arrived <- got{r.Method, r.Params}
		return <-results, nil
	}), api.Options{})
	p := s.dial(t)

	seen := map[string]bool{}
	for i, ex := range examples {
		spec, ok := table[ex.Method]
		if !ok {
			t.Fatalf("there is no method %s", ex.Method)
		}
		seen[ex.Method] = true
		result := reflect.New(spec.Result)
		if err := json.Unmarshal(ex.Result, result.Interface(), json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: result: %v", ex.Method, err)
		}
		results <- result.Elem().Interface()
		id := strconv.Itoa(i)
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + ex.Method + `","params":` + compact(t, ex.Params) + `}`)
		reply := p.recv()
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":` + compact(t, ex.Result) + `}`; reply != want {
			t.Fatalf("%s:\ngot  %s\nwant %s", ex.Method, reply, want)
		}
		a := <-arrived
		if a.method != ex.Method || reflect.TypeOf(a.params) != reflect.PointerTo(spec.Params) {
			t.Errorf("%s: %s with %T arrived", ex.Method, a.method, a.params)
		}
		back, err := json.Marshal(a.params)
		if err != nil {
			t.Fatal(err)
		}
		if want := compact(t, ex.Params); string(back) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", ex.Method, back, want)
		}
	}
	for _, m := range api.Methods() {
		if !seen[m.Name] {
			t.Errorf("%s has no example", m.Name)
		}
		if m.Summary == "" || m.Summary[len(m.Summary)-1] != '.' {
			t.Errorf("%s has no summary: %q", m.Name, m.Summary)
		}
		if m.Params.Kind() != reflect.Struct {
			t.Errorf("%s: parameters are a %s", m.Name, m.Params)
		}
	}
}

func TestEveryEventHasItsWireForm(t *testing.T) {
	types := map[string]api.EventSpec{}
	for _, s := range api.EventTypes() {
		types[s.Name] = s
	}
	seen := map[string]bool{}
	for _, ex := range load[struct {
		Type string         `json:"type"`
		Data jsontext.Value `json:"data"`
	}](t, "testdata/events.json") {
		spec, ok := types[ex.Type]
		if !ok {
			t.Fatalf("there is no event %s", ex.Type)
		}
		seen[ex.Type] = true
		data := reflect.New(spec.Data)
		if err := json.Unmarshal(ex.Data, data.Interface(), json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", ex.Type, err)
		}
		back, err := json.Marshal(data.Elem().Interface())
		if err != nil {
			t.Fatal(err)
		}
		if want := compact(t, ex.Data); string(back) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", ex.Type, back, want)
		}
	}
	for name := range types {
		if !seen[name] {
			t.Errorf("%s has no example", name)
		}
	}
}

// The frame of an event, whole.
func TestEventFrame(t *testing.T) {
	s := serve(t, newDesk(), api.Options{})
	p := s.open(t)
	n := event(t, 1_000_000_007, 1)
	if err := (<-s.conns).Notify(n); err != nil {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","method":"event","params":{"epoch":"e","seq":1000000007,"time":"1970-01-01T00:00:01.000000007Z","type":"process.output","data":{"pad":"x"}}}`
	if got := p.recv(); got != want || n.Size() != len(want) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}
