package daemon

import (
	"github.com/wattle-dev/wattle/sandbox"
	"github.com/wattle-dev/wattle/trash"
)

// CommandKeeper has what commands remove kept in a trash, where the policy says
// trash_commands: for [sandbox.Options]. What a command removed comes back by
// [trash.Bin.RestoreGroup] with the id of its Spec.
func CommandKeeper(b *trash.Bin) sandbox.Keeper { return commandKeeper{b} }

type commandKeeper struct{ bin *trash.Bin }

func (k commandKeeper) Begin(r sandbox.Removing) sandbox.Keeping {
	return k.bin.Group(trash.GroupOptions{ID: r.ID, Base: r.Workspace, Writable: r.Writable})
}
