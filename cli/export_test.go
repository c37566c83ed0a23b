package cli

// For tests of what has no command of its own.
var (
	Printable = printable
	ParseDur  = func(s string) (string, error) {
		var l limit
		err := l.Set(s)
		return l.String(), err
	}
	ParsePlace = parsePlace
)
