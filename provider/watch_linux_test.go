package provider_test

import (
	"testing"

	"github.com/wattle-dev/wattle/provider"
	"github.com/wattle-dev/wattle/provider/providertest"
)

// What other systems use keeps the contract of the watch too, as far as this
// system can show it.
func TestWatchByPath(t *testing.T) {
	providertest.RunWatch(t, func(t *testing.T) provider.Provider {
		l := newLocal(t)
		l.WatchByPath()
		return l
	})
}
