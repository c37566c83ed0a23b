package trash_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/trash"
)

func TestParseAnswer(t *testing.T) {
	for out, want := range map[string]string{
		`{"landing":"/T/f"}` + "\n":            "/T/f",
		`{"landing":"/T/a\"b\n\u00e9"}` + "\n": "/T/a\"b\né",
		` {"landing" : "/T/f"} ` + "\n":        "/T/f",
		"":                                     "",
		"\n":                                   "",
		"{}\n":                                 "",
		"null\n":                               "",
		"true\n":                               "",
		`"/T/f"` + "\n":                        "",
		`{"landing":"/T/f"}`:                   "",
		`{"landing":"/T/f"}` + "\r\n\n":        "",
		`{"landing":"/T/f"}{"landing":"/T/f"}` + "\n":                   "",
		`{"landing":"/T/f","landing":"/T/g"}` + "\n":                    "",
		`{"landing":"/T/f","extra":1}` + "\n":                           "",
		`{"Landing":"/T/f"}` + "\n":                                     "",
		`{"landing":null}` + "\n":                                       "",
		`{"landing":""}` + "\n":                                         "",
		`{"landing":"f"}` + "\n":                                        "",
		`{"landing":"/"}` + "\n":                                        "",
		`{"landing":"/T/"}` + "\n":                                      "",
		`{"landing":"/T/../f"}` + "\n":                                  "",
		`{"landing":"/T/f\u0000"}` + "\n":                               "",
		`{"landing":["/T/f"]}` + "\n":                                   "",
		`{"landing":"/T/f","domain":"d","code":1,"message":"m"}` + "\n": "",
		`{"landing":"` + strings.Repeat("/x", 10_000) + `"}` + "\n":     "",
		"{\"landing\":\"/T/\xff\"}\n":                                   "",
	} {
		got, err := trash.ParseAnswer(out)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", out, got, err)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%q: an error of %d bytes", out, len(err.Error()))
		}
	}
	for out, want := range map[string]error{
		`{"domain":"NSCocoaErrorDomain","code":4,"message":"m"}`:     fs.ErrNotExist,
		`{"domain":"NSCocoaErrorDomain","code":513,"message":"m"}`:   fs.ErrPermission,
		`{"domain":"NSCocoaErrorDomain","code":642,"message":"m"}`:   fs.ErrPermission,
		`{"domain":"NSCocoaErrorDomain","code":3328,"message":"m"}`:  errors.ErrUnsupported,
		`{"domain":"NSPOSIXErrorDomain","code":1,"message":"m"}`:     fs.ErrPermission,
		`{"domain":"NSPOSIXErrorDomain","code":513,"message":"m"}`:   nil,
		`{"domain":"NSOSStatusErrorDomain","code":-43,"message":""}`: nil,
	} {
		_, err := trash.ParseAnswer(out + "\n")
		if err == nil || want != nil && !errors.Is(err, want) || want == nil && errors.Unwrap(err) != nil {
			t.Errorf("%s: %v", out, err)
		}
	}
	for _, out := range []string{
		`{"domain":"d","code":1.5,"message":"m"}`, `{"domain":"d","code":"1","message":"m"}`, `{"domain":"d","code":null,"message":"m"}`,
		`{"domain":"d","code":1}`, `{"code":1,"message":"m"}`, `{"domain":1,"code":1,"message":"m"}`,
	} {
		if _, err := trash.ParseAnswer(out + "\n"); err == nil || !strings.Contains(err.Error(), "not understood") {
			t.Errorf("%s: %v", out, err)
		}
	}
}
