//go:build !linux

package dirwatch

// Open begins a Source; see [OpenByPath].
func Open(tell func(Event)) (Source, error) { return OpenByPath(tell) }
