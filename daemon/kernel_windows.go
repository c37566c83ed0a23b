package daemon

// kernelRelease is not told here.
func kernelRelease() string { return "" }
