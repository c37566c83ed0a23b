package cli_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/wattle-dev/wattle/cli"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"/srv/ws/file":          "/srv/ws/file",
		"naïve – ☂":             "naïve – ☂",
		"a\nwattle: denied b":   `a\nwattle: denied b`,
		"\x1b]0;title\a":        `\x1b]0;title\a`,
		"a\xffb":                `a\xffb`,
		"a\tb\x7f":              `a\tb\x7f`,
		"evil\u202etxt.exe":     `evil\u202etxt.exe`,
		"\u2028":                `\u2028`,
		`already \n`:            `already \n`,
		"\u009b31m":             `\u009b31m`,
		strings.Repeat("x", 10): "xxxxxxxxxx",
	} {
		if got := cli.Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[2J", "\xff\xfe", "a\nb", "\u202e", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := cli.Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q became %q", s, got)
		}
		if len(s) <= len(got) && got == s {
			return
		}
		if !strings.Contains(got, `\`) {
			t.Fatalf("%q lost something: %q", s, got)
		}
	})
}

func TestTimeouts(t *testing.T) {
	for in, want := range map[string]string{
		"50ms": "50ms", "2s": "2s", "1h30m": "1h30m0s", "10": "10s", "0.05": "50ms", "1e3": "16m40s",
		"": "error", "0": "error", "-1": "error", "-3s": "error", "soon": "error", "NaN": "error", "1e30": "error", "Inf": "error", "10 s": "error",
	} {
		got, err := cli.ParseDur(in)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for in, ok := range map[string]bool{
		"EPOCH:1": true, "EPOCH:0": true, "E:9223372036854775807": true,
		"": false, ":": false, ":1": false, "E": false, "E:": false, "E:-1": false, "E:x": false, "E:1:2": false, "E:9223372036854775808": false,
	} {
		p, err := cli.ParsePlace(in)
		if (err == nil) != ok || ok && p.Epoch == "" {
			t.Errorf("%q: %+v, %v", in, p, err)
		}
	}
}
