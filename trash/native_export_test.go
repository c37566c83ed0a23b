package trash

import (
	"context"
	"runtime"
	"time"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// FakeSystem stands for what only macOS or Windows can do.
type FakeSystem struct {
	// Trash is asked to trash a path.
	Trash func(path string) (landing string, err error)
	// Refuse is asked before, unless it is nil.
	Refuse func(path string) *record.Error
	// Companion is as in system.
	Companion func(landed string) string
}

type fakeSystem struct{ FakeSystem }

func (f fakeSystem) trash(path string) (string, error) { return f.Trash(path) }

func (f fakeSystem) refuse(_ context.Context, s *subject) *record.Error {
	if f.Refuse == nil {
		return nil
	}
	return f.Refuse(s.path)
}

func (f fakeSystem) names() []string { return []string{".trash", ".trashes"} }

func (f fakeSystem) companion(landed string) string {
	if f.Companion == nil {
		return ""
	}
	return f.Companion(landed)
}

func (f fakeSystem) owners() bool { return runtime.GOOS != "windows" }

// NewNativeBin is a Bin with the back end of macOS and Windows around a fake.
func NewNativeBin(c Config, limit time.Duration, f FakeSystem) *Bin {
	n := newNative(c, fakeSystem{f})
	n.limit = limit
	return &Bin{b: n}
}

// NewScriptedBin is a Bin with that of macOS, another program, and things
// mounted at these places.
func NewScriptedBin(c Config, program string, mounts ...string) *Bin {
	return &Bin{b: newNative(c, newOsascript(program, func() ([]string, error) { return mounts, nil }))}
}

// RunScript runs a program as osascript is, with a limit.
func RunScript(program string, limit time.Duration, path string) (string, error) {
	return (&osascript{program: program, limit: limit}).trash(path)
}

// SystemError is a refusal of the system.
func SystemError(is error, text string) error { return &systemError{is, text} }

const (
	MaxNativeCalls = maxAsked
	TrashScript    = trashScript
)

// ParseAnswer is parseAnswer.
func ParseAnswer(out string) (string, error) { return parseAnswer([]byte(out)) }

// Companion is what the recycle bin has beside a name.
func Companion(landed string) string { return (&recycle{}).companion(landed) }

// RefusePath is refusePath.
func RefusePath(path string) string { return refusePath(path) }

// BinFacts is binFacts.
type BinFacts struct {
	Drive          string
	Policy         bool
	Settings, Nuke bool
	Quota, Volume  int64
}

func (b BinFacts) facts() binFacts {
	kind := map[string]driveKind{"fixed": driveFixed, "removable": driveRemovable, "remote": driveRemote, "other": driveOther}[b.Drive]
	return binFacts{kind, b.Policy, b.Settings, b.Nuke, b.Quota, b.Volume}
}

// RefuseBin is binFacts.refuse; RefuseThing binFacts.refuseThing.
func RefuseBin(b BinFacts) string { return b.facts().refuse() }
func RefuseThing(b BinFacts, kind string, files, bytes int64) string {
	return b.facts().refuseThing(measure{files, bytes}, kind)
}

// RefuseRecycle is what the recycle bin says beforehand of a thing that is not
// where path says.
func RefuseRecycle(ctx context.Context, dir *anchor.Dir, name, path string, facts func(string) (BinFacts, error)) *record.Error {
	info, err := dir.Lstat(name)
	if err != nil {
		panic(err)
	}
	r := &recycle{facts: func(p string) (binFacts, error) { b, err := facts(p); return b.facts(), err }}
	return r.refuse(ctx, &subject{dir, name, path, path, info})
}
