package trash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf16"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash/record"
)

// The shell of Windows erases outright what its recycle bin does not take, also
// when it was asked to recycle. So it is decided here beforehand, by what can be
// known of the drive, of the bin and of the thing; what is not known is no. The
// shell is asked once more when it is about to act (see sink.preDelete).

// driveKind is what GetDriveType says.
type driveKind int

const (
	driveUnknown driveKind = iota
	driveRemovable
	driveFixed
	driveRemote
	driveOther // CD, RAM disk, no such drive
)

// binFacts are what the decision goes by.
type binFacts struct {
	drive driveKind
	// policy: NoRecycleFiles is set, for this user or for the machine.
	policy bool
	// settings tells whether the bin of this volume has settings yet; nuke is
	// NukeOnDelete, quota MaxCapacity, in bytes.
	settings, nuke bool
	quota          int64
	// volume is the size of the volume in bytes, as far as the user may fill it;
	// 0 when it is not known.
	volume int64
}

// refuse says why the bin takes nothing from there, "" when it may.
func (f binFacts) refuse() string {
	switch {
	case f.drive == driveRemote:
		return "it is on a network drive, where Windows erases outright"
	case f.drive == driveRemovable:
		return "it is on a removable drive, where Windows erases outright"
	case f.drive != driveFixed:
		return "it is not on a fixed drive, and Windows may erase it outright"
	case f.policy:
		return "a policy (NoRecycleFiles) turns the recycle bin off"
	case f.settings && f.nuke:
		return "the recycle bin of this drive is turned off (NukeOnDelete)"
	case f.most() <= 0:
		return "it cannot be learned how much the recycle bin of this drive takes"
	}
	return ""
}

// most is how many bytes the bin takes. Without settings it is less than what
// Windows chooses itself: ten per cent of the first 40 GB and five of the rest.
func (f binFacts) most() int64 {
	if f.settings && f.quota > 0 {
		return f.quota
	}
	return f.volume / 20
}

// refuseThing says why the bin does not take this thing.
func (f binFacts) refuseThing(m measure, kind string) string {
	switch {
	case kind == "directory" && m.files == 0:
		return "Windows erases a folder without files outright"
	case m.bytes > f.most():
		return fmt.Sprintf("it is larger than the recycle bin of this drive takes (%d bytes)", f.most())
	}
	return ""
}

// maxShellPath is how long a path the shell takes, in UTF-16 units (MAX_PATH
// without its end).
const maxShellPath = 259

// refusePath says why the shell would not understand a path, or take another
// thing for it.
func refusePath(path string) string {
	if len(path) < 4 || path[1] != ':' || path[2] != '\\' || !letter(path[0]) {
		return "it is not on a drive with a letter"
	}
	if n := len(utf16.Encode([]rune(path))); n > maxShellPath {
		return fmt.Sprintf("its path has %d characters, and the recycle bin takes at most %d", n, maxShellPath)
	}
	for name := range strings.SplitSeq(path[3:], `\`) {
		switch {
		case name == "" || strings.ContainsAny(name, `<>:"/|?*`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }):
			return fmt.Sprintf("the shell takes no name %q", name)
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return fmt.Sprintf("the shell takes the name %q for another one", name)
		case device(name):
			return fmt.Sprintf("the shell takes the name %q for a device", name)
		}
	}
	return ""
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// device tells whether a name, with any ending, is that of a device.
func device(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimRight(stem, " ")
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}, stem) {
		return true
	}
	rest, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		rest, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && slices.Contains([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"}, rest)
}

// recycle is the recycle bin, apart from what only Windows itself can do.
type recycle struct {
	// facts are asked for a path.
	facts func(path string) (binFacts, error)
	// perform has the shell recycle.
	perform func(path string) (landing string, err error)
}

func (r *recycle) trash(path string) (string, error) { return r.perform(path) }

func (r *recycle) refuse(ctx context.Context, t *subject) *record.Error {
	if t.info.IsSymlink() {
		// It has no identity here, so that nobody could say what was recycled.
		return failure(record.CodeRejected, record.ReasonSymlink, opPut, t.path, "links are not moved to the recycle bin", nil)
	}
	if why := refusePath(t.at); why != "" {
		return notKept(t.path, why, nil)
	}
	f, err := r.facts(t.at)
	if err != nil {
		return notKept(t.path, "its drive cannot be looked at", err)
	}
	if why := f.refuse(); why != "" {
		return notKept(t.path, why, nil)
	}
	m, err := measureThing(ctx, t, f.most())
	if err != nil {
		if ctx.Err() != nil {
			return failed(opPut, t.path, "", err)
		}
		return notKept(t.path, "its size cannot be learned", err)
	}
	if why := f.refuseThing(m, typeOf(t.info)); why != "" {
		return notKept(t.path, why, nil)
	}
	return nil
}

func (r *recycle) names() []string { return []string{"$recycle.bin"} }

// companion: beside the data, $R and six characters, the bin keeps where it came
// from, in $I and the same.
func (r *recycle) companion(landed string) string {
	if rest, ok := strings.CutPrefix(landed, "$R"); ok && rest != "" {
		return "$I" + rest
	}
	return ""
}

// owners: who may write is in access lists here, and not in modes. What is
// beneath a profile only its user may write.
func (r *recycle) owners() bool { return false }

// measure is how much there is in a thing.
type measure struct {
	files int64 // no directories
	bytes int64
}

// maxMeasured is how deep a directory is measured.
const maxMeasured = 256

// measureThing adds up sizes until they are more than most. It follows no link.
func measureThing(ctx context.Context, t *subject, most int64) (m measure, err error) {
	if !t.info.IsDir() {
		return measure{1, t.info.Size}, nil
	}
	return m, m.add(ctx, t.dir, t.name, most, 0)
}

func (m *measure) add(ctx context.Context, in *anchor.Dir, name string, most int64, depth int) error {
	if depth > maxMeasured {
		return &fs.PathError{Op: "measure", Path: filepath.Join(in.Path(), name), Err: syscall.ENAMETOOLONG}
	}
	d, err := in.Walk(name)
	if err != nil {
		return err
	}
	defer d.Close()
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer s.Close()
	for m.bytes <= most {
		if err := ctx.Err(); err != nil {
			return err
		}
		es, err := s.Next(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range es {
			if e.IsDir() {
				if err := m.add(ctx, d, e.Name, most, depth+1); err != nil {
					return err
				}
				continue
			}
			i, err := d.Lstat(e.Name)
			if err != nil {
				return err
			}
			m.files++
			m.bytes += i.Size
		}
	}
	return nil
}
