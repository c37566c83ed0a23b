package cli

import "os"

// Windows has no process groups of terminals and no numbers of signals; no
// command is started there.

func fromTerminal() bool { return true }

func signalName(s os.Signal) string { return s.String() }

func signalNumber(string) int { return 0 }
