//go:build !linux

package dirwatch

import "github.com/wattle-dev/wattle/internal/anchor"

// Blind does not know the file systems of this system: always "".
func Blind(*anchor.Dir) string { return "" }
