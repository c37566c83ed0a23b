//go:build unix

package providertest

import (
	"testing"

	"github.com/wattle-dev/wattle/provider"
)

// Make gives a provider for one test. Its directory for relative paths does
// not matter.
type Make func(t *testing.T) provider.Provider

// Run holds an implementation to the whole contract.
func Run(t *testing.T, mk Make) {
	t.Run("resolve", func(t *testing.T) { testResolve(t, mk) })
	t.Run("look", func(t *testing.T) { testLook(t, mk) })
	t.Run("listDir", func(t *testing.T) { testListDir(t, mk) })
	t.Run("listPages", func(t *testing.T) { testListPages(t, mk) })
	t.Run("reads", func(t *testing.T) { testReads(t, mk) })
	t.Run("readText", func(t *testing.T) { testReadText(t, mk) })
	t.Run("streamText", func(t *testing.T) { testStream(t, mk) })
	t.Run("readBytes", func(t *testing.T) { testReadBytes(t, mk) })
	t.Run("readLines", func(t *testing.T) { testReadLines(t, mk) })
	t.Run("writeText", func(t *testing.T) { testWriteText(t, mk) })
	t.Run("writeOutcome", func(t *testing.T) { testWriteOutcome(t, mk) })
	t.Run("editText", func(t *testing.T) { testEditText(t, mk) })
	t.Run("applyPatch", func(t *testing.T) { testApplyPatch(t, mk) })
	t.Run("patchText", func(t *testing.T) { testPatchText(t, mk) })
	t.Run("movePath", func(t *testing.T) { testMovePath(t, mk) })
	t.Run("copyPath", func(t *testing.T) { testCopyPath(t, mk) })
	t.Run("deleteFile", func(t *testing.T) { testDeleteFile(t, mk) })
	t.Run("deletePath", func(t *testing.T) { testDeletePath(t, mk) })
	t.Run("trash", func(t *testing.T) { testTrash(t, mk) })
	t.Run("keepOverwritten", func(t *testing.T) { testKeepOverwritten(t, mk) })
	t.Run("moveFile", func(t *testing.T) { testMoveFile(t, mk) })
	t.Run("makeDir", func(t *testing.T) { testMakeDir(t, mk) })
	t.Run("fence", func(t *testing.T) { testFence(t, mk) })
	t.Run("version", func(t *testing.T) { testVersion(t, mk) })
	t.Run("together", func(t *testing.T) { testTogether(t, mk) })
	t.Run("cancel", func(t *testing.T) { testCancel(t, mk) })
	t.Run("watch", func(t *testing.T) { RunWatch(t, mk) })
	t.Run("pure", func(t *testing.T) { testPure(t, mk) })
}
