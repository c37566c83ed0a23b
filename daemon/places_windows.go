package daemon

// ownedByUs: there are no runtime directories on this system.
func ownedByUs(string) bool { return false }
