package fence_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/fence"
)

func TestParseMode(t *testing.T) {
	for in, want := range map[string]fence.Mode{
		"read-only": fence.ReadOnly, "workspace-write": fence.WorkspaceWrite, "full-access": fence.FullAccess,
		"danger-full-access": fence.FullAccess,
		"":                   "", "Read-Only": "", "readonly": "", "read-only ": "", "none": "", "full": "",
	} {
		got, err := fence.ParseMode(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
		var m fence.Mode
		if err := json.Unmarshal([]byte(`"`+in+`"`), &m); m != want || (err == nil) != (want != "") {
			t.Errorf("JSON %q: %q, %v", in, m, err)
		}
	}
	text, err := json.Marshal(fence.FullAccess)
	if err != nil || string(text) != `"full-access"` {
		t.Error(string(text), err)
	}
}

// TestWider: an unknown mode is the narrowest, so a typing error opens nothing.
func TestWider(t *testing.T) {
	order := []fence.Mode{"", fence.ReadOnly, fence.WorkspaceWrite, fence.FullAccess}
	for i, a := range order {
		for j, b := range order {
			if a.Wider(b) != (i > j) {
				t.Errorf("%q.Wider(%q) = %t", a, b, a.Wider(b))
			}
		}
		if a.Fenced() != (a != fence.FullAccess) {
			t.Errorf("%q.Fenced() = %t", a, a.Fenced())
		}
	}
	if fence.Mode("danger-full-access").Wider(fence.ReadOnly) {
		t.Error("an unparsed name is wider than read-only")
	}
}

func TestParseAccess(t *testing.T) {
	for _, a := range fence.Accesses {
		if got, err := fence.ParseAccess(string(a)); got != a || err != nil {
			t.Errorf("%s: %s, %v", a, got, err)
		}
		reads := slices.Contains([]fence.Access{fence.Read, fence.Execute, fence.Connect}, a)
		if a.Mutates() == reads {
			t.Errorf("%s.Mutates() = %t", a, a.Mutates())
		}
	}
	for _, s := range []string{"", "READ", "open", "write "} {
		if got, err := fence.ParseAccess(s); err == nil {
			t.Errorf("%q: %s", s, got)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	for _, s := range []string{"on", "off", "loopback"} {
		if n, err := fence.ParseNetwork(s); err != nil || string(n) != s {
			t.Error(n, err)
		}
	}
	for _, s := range []string{"", "ON", "true", "1"} {
		if n, err := fence.ParseNetwork(s); err == nil {
			t.Errorf("%q: %s", s, n)
		}
	}
}
