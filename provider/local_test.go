//go:build unix

package provider_test

import (
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/providertest"
)

func newLocal(t *testing.T) *provider.Local {
	t.Helper()
	l, err := provider.NewLocal(provider.Config{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T) provider.Provider { return newLocal(t) })
}
