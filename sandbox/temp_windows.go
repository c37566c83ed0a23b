package sandbox

import "errors"

// Temp is not made on this system.
type Temp struct{}

// MakeTemp: there are no locks that a sweep could ask here.
func MakeTemp(string) (*Temp, error) {
	return nil, errors.New("temporary directories of commands exist on systems with unix permissions only")
}

// Path is empty.
func (*Temp) Path() string { return "" }

// Remove has nothing to remove.
func (*Temp) Remove() {}
