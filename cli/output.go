package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mattn/go-isatty"
)

// say tells a person something beside the result. An error of stderr has
// nowhere to go.
func (w *world) say(format string, a ...any) {
	fmt.Fprintf(w.stderr, "wattle: "+format+"\n", a...)
}

// errWrite: the result could not be written. Nobody would learn of more.
var errWrite = errors.New("write result")

// print is part of the result. Its error is the command's.
func (w *world) print(format string, a ...any) error {
	if _, err := fmt.Fprintf(w.stdout, format, a...); err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	return nil
}

// bytes is part of the result as it is.
func (w *world) bytes(b []byte) error {
	if _, err := w.stdout.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	return nil
}

// outgoing encodes as the daemon does: what is no UTF-8 becomes U+FFFD, and
// equal values give equal text.
var outgoing = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

// encodeLine is a value as one line of JSON.
func encodeLine(v any) ([]byte, error) {
	b, err := json.Marshal(v, outgoing)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return append(b, '\n'), nil
}

// jsonLine writes a value as one line, with one write.
func (w *world) jsonLine(to io.Writer, v any) error {
	b, err := encodeLine(v)
	if err != nil {
		return err
	}
	if _, err := to.Write(b); err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	return nil
}

// result prints a value as JSON, or what text makes of it.
func (w *world) result(asJSON bool, v any, text func() error) error {
	if asJSON {
		return w.jsonLine(w.stdout, v)
	}
	return text()
}

// printable escapes what a terminal would not show as it is: control
// characters, line breaks, bytes that are no UTF-8, and marks that reorder
// text. A path in a message must not be able to forge another message.
func printable(s string) string { return escape(s, "") }

// printableLines is printable for text that may have several lines.
func printableLines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	plain := func(r rune) bool { return unicode.IsPrint(r) || strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || !plain(r) {
			q := strconv.QuoteToASCII(s[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// isTerminal tells whether a person looks at it.
func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// coloured tells whether a stream may be coloured (no-color.org, bixense.com/clicolors).
func (w *world) coloured(f *os.File) bool {
	if w.getenv("NO_COLOR") != "" {
		return false
	}
	if force := w.getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return isTerminal(f) && w.getenv("TERM") != "dumb"
}

// short is the beginning of an id, for tables.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
