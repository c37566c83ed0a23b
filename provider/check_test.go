package provider_test

import (
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// must ends the test on an error that is none of its subject.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// code compares an error's code; "" is success.
func code(t *testing.T, err error, want provider.Code) {
	t.Helper()
	if got := provider.CodeOf(err); got != want || (err == nil) != (want == "") {
		t.Errorf("code %q, want %q: %v", got, want, err)
	}
}
