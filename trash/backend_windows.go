package trash

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func newBackend(c Config) backend {
	return newNative(c, &recycle{facts: learn, perform: perform})
}

// learn asks for what the decision about a path goes by. A drive that has no
// volume of its own (a substituted one) is an error.
func learn(path string) (binFacts, error) {
	var f binFacts
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return f, err
	}
	root := make([]uint16, windows.MAX_PATH+1)
	if err := windows.GetVolumePathName(p, &root[0], uint32(len(root))); err != nil {
		return f, fmt.Errorf("GetVolumePathName: %w", err)
	}
	f.drive = kindOf(windows.GetDriveType(&root[0]))
	if f.drive != driveFixed {
		return f, nil
	}
	volume := make([]uint16, windows.MAX_PATH+1)
	if err := windows.GetVolumeNameForVolumeMountPoint(&root[0], &volume[0], uint32(len(volume))); err != nil {
		return f, fmt.Errorf("GetVolumeNameForVolumeMountPoint: %w", err)
	}
	var all uint64
	if err := windows.GetDiskFreeSpaceEx(&root[0], nil, &all, nil); err != nil {
		return f, fmt.Errorf("GetDiskFreeSpaceEx: %w", err)
	}
	f.volume = int64(min(all, math.MaxInt64))
	return f, f.settle(windows.UTF16ToString(volume))
}

func kindOf(drive uint32) driveKind {
	switch drive {
	case windows.DRIVE_REMOVABLE:
		return driveRemovable
	case windows.DRIVE_FIXED:
		return driveFixed
	case windows.DRIVE_REMOTE:
		return driveRemote
	case windows.DRIVE_UNKNOWN:
		return driveUnknown
	}
	return driveOther
}

const (
	explorerKey = `Software\Microsoft\Windows\CurrentVersion\Explorer\BitBucket\Volume\`
	policyKey   = `Software\Microsoft\Windows\CurrentVersion\Policies\Explorer`
)

// settle reads the settings of the bin, and the policies.
func (f *binFacts) settle(volume string) error {
	for _, top := range []registry.Key{registry.CURRENT_USER, registry.LOCAL_MACHINE} {
		v, _, err := number(top, policyKey, "NoRecycleFiles")
		if err != nil {
			return err
		}
		f.policy = f.policy || v != 0
	}
	from, to := strings.IndexByte(volume, '{'), strings.IndexByte(volume, '}')
	if from < 0 || to < from {
		return fmt.Errorf("the volume has no name: %q", volume)
	}
	key := explorerKey + volume[from:to+1]
	nuke, has, err := number(registry.CURRENT_USER, key, "NukeOnDelete")
	if err != nil {
		return err
	}
	f.settings, f.nuke = has, nuke != 0
	capacity, has, err := number(registry.CURRENT_USER, key, "MaxCapacity")
	if err != nil {
		return err
	}
	f.settings = f.settings || has
	f.quota = int64(min(capacity, math.MaxInt64>>20)) << 20 // it is in MB
	return nil
}

// number reads a number of the registry; has tells whether it is there.
func number(top registry.Key, key, name string) (v uint64, has bool, err error) {
	k, err := registry.OpenKey(top, key, registry.QUERY_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("open %s: %w", key, err)
	}
	defer k.Close()
	v, _, err = k.GetIntegerValue(name)
	if errors.Is(err, registry.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read %s: %w", name, err)
	}
	return v, true, nil
}
