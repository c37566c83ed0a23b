package daemon

// Followed tells whether there are subscribers and all have been handed all
// there is.
func Followed(l *Log) bool {
	l.mu.Lock()
	n := len(l.followers)
	l.mu.Unlock()
	return n > 0 && l.followed()
}
