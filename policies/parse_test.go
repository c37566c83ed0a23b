package policies_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/policies"
)

func code(err error) string {
	var e *policies.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// everything uses each key once, in both languages.
const everythingTOML = `
description = "all keys"
mode = "danger-full-access"
writable = ["a"]
protected = ["**/p", { match = "**/q", not_under = ["n"] }]
unprotected = ["**/.vscode"]
hide = ["~/h*"]
visible = ["~/h/v"]
readable = ["/r"]
readable_base = ["/b"]
devices = ["/dev/kvm", { path = "/dev/ttyS0", write = true, ioctl = true }, { path = "/dev/rtc" }]
network = "loopback"
unix_sockets = ["/s"]
protect = "off"
require = "best-effort"
scratch_in_read_only = true
attribute_reads = false
keep_overwritten = true
trash_commands = true
compat_tmp = true
caches = ["{cache}/c"]
[env]
pass = ["A", "B_*"]
[env.set]
C = "{scratch}/c"
D = ""
`

const everythingJSON = `{
"description": "all keys", "mode": "danger-full-access", "writable": ["a"],
"protected": ["**/p", {"match": "**/q", "notUnder": ["n"]}], "unprotected": ["**/.vscode"],
"hide": ["~/h*"], "visible": ["~/h/v"], "readable": ["/r"], "readableBase": ["/b"],
"devices": ["/dev/kvm", {"path": "/dev/ttyS0", "write": true, "ioctl": true}, {"path": "/dev/rtc"}],
"network": "loopback", "unixSockets": ["/s"], "protect": "off", "require": "best-effort",
"scratchInReadOnly": true, "attributeReads": false, "keepOverwritten": true, "trashCommands": true, "compatTmp": true, "caches": ["{cache}/c"],
"env": {"pass": ["A", "B_*"], "set": {"C": "{scratch}/c", "D": ""}}}`

// ignoring compares documents without lines and origins, which JSON has not.
var ignoring = cmp.Options{
	cmpopts.IgnoreFields(policies.Item{}, "Line"), cmpopts.IgnoreFields(policies.Protected{}, "Line"),
	cmpopts.IgnoreFields(policies.Device{}, "Line"), cmpopts.IgnoreFields(policies.Readable{}, "Line"),
	cmpopts.IgnoreFields(policies.Document{}, "Origin"),
}

func TestBothLanguagesSayTheSame(t *testing.T) {
	fromTOML, err := policies.ParseTOML("t.toml", []byte(everythingTOML))
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, err := policies.ParseJSON([]byte(everythingJSON))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromTOML, fromJSON, ignoring); diff != "" {
		t.Error(diff)
	}
	v := reflect.ValueOf(fromTOML)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not in the test", v.Type().Field(i).Name)
		}
	}
	// And there and back again.
	text, err := json.Marshal(fromTOML)
	if err != nil {
		t.Fatal(err)
	}
	again, err := policies.ParseJSON(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(fromTOML, again, ignoring); diff != "" {
		t.Error(diff)
	}
}

// TestNamesDifferByCaseOnly: a key of TOML is the name in JSON in snake_case.
func TestNamesDifferByCaseOnly(t *testing.T) {
	typ := reflect.TypeFor[policies.Document]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		var key strings.Builder
		for _, r := range name {
			if unicode.IsUpper(r) {
				key.WriteByte('_')
			}
			key.WriteRune(unicode.ToLower(r))
		}
		if !slices.Contains(strings.FieldsFunc(everythingTOML, func(r rune) bool { return strings.ContainsRune(" \n[]", r) }), key.String()) {
			t.Errorf("%s has no key %s in TOML", name, key.String())
		}
	}
}

func TestLines(t *testing.T) {
	d, err := policies.ParseTOML("f", []byte("writable = [\n  \"a\",\n\n  'b', \"\"\"\nc\"\"\"]\n[[protected]]\nmatch = \"x\"\n[[protected]]\nmatch = \"y\"\n[env.set]\nA.B=\"\"\n"))
	if err == nil || d.Writable != nil {
		t.Fatal("a name with a dot is a table of its own:", err)
	}
	d, err = policies.ParseTOML("f", []byte("writable = [\n  \"a\",\n\n  'b', \"\"\"\nc\"\"\"]\n[[protected]]\nmatch = \"x\"\n[[protected]]\nmatch = \"y\"\n[env]\nset.A = \"1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []policies.Item{{Text: "a", Line: 2}, {Text: "b", Line: 4}, {Text: "c", Line: 4}}
	if diff := cmp.Diff(want, d.Writable); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]policies.Protected{{Match: "x", Line: 6}, {Match: "y", Line: 8}}, d.Protected); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]policies.Item{"A": {Text: "1", Line: 11}}, d.Env.Set); diff != "" {
		t.Error(diff)
	}
}

func TestMalformedTOML(t *testing.T) {
	for _, tc := range []struct {
		name, doc string
		line, col int
		msg       string
	}{
		{"unknown key", "mode = \"read-only\"\nwriteable = []\n", 2, 1, `unknown key "writeable"`},
		{"other case", "Mode = \"read-only\"\n", 1, 1, `unknown key "Mode": write mode`},
		{"upper case", "\n\nHIDE = []\n", 3, 1, `unknown key "HIDE": write hide`},
		{"camel case", "unixSockets = []\n", 1, 1, `write unix_sockets`},
		{"other case in a table", "[ENV]\npass = []\n", 1, 2, `write env`},
		{"other case in an inner table", "[env]\nPass = []\n", 2, 1, `write pass`},
		{"other case of a protection", "protected = [{ Match = \"a\" }]\n", 1, 16, `write match`},
		{"unknown in a protection", "protected = [{ match = \"a\", why = 1 }]\n", 1, 29, `unknown key "why"`},
		{"unknown in a device", "devices = [{ path = \"/dev/x\", Write = true }]\n", 1, 31, `write write`},
		{"unknown table", "[mcp]\na = 1\n", 1, 2, `unknown key "mcp"`},
		{"unknown array of tables", "[[rules]]\na = 1\n", 1, 3, `unknown key "rules"`},
		{"duplicate", "network = \"on\"\nnetwork = \"off\"\n", 2, 1, "already defined"},
		{"duplicate quoted", "network = \"on\"\n\"network\" = \"off\"\n", 2, 1, "already defined"},
		{"duplicate in other case", "network = \"on\"\nNetwork = \"off\"\n", 2, 1, "write network"},
		{"duplicate table", "[env]\n[env]\n", 2, 2, "already exists"},
		{"duplicate variable", "[env.set]\nA = \"1\"\nA = \"2\"\n", 3, 1, "already defined"},
		{"number for string", "mode = 1\n", 1, 8, "a string is expected here, not a number"},
		{"string for list", "writable = \"a\"\n", 1, 12, "a list is expected here, not a string"},
		{"list for string", "network = [\"on\"]\n", 1, 1, "a string is expected here, not a list"},
		{"number in a list", "writable = [\"a\", 2]\n", 1, 18, "a string is expected here"},
		{"list in a list", "writable = [[\"a\"]]\n", 1, 1, "a string is expected here, not a list"},
		{"string for bool", "compat_tmp = \"yes\"\n", 1, 14, "true or false is expected here"},
		{"table for bool", "[compat_tmp]\n", 1, 2, "true or false is expected here, not a table"},
		{"string for table", "env = \"A=1\"\n", 1, 7, "a table is expected here"},
		{"number as variable", "[env.set]\nA = 1\n", 2, 5, "a string is expected here"},
		{"date", "mode = 2020-01-01\n", 1, 8, "a string is expected here"},
		{"no such mode", "mode = \"readonly\"\n", 1, 8, "none of read-only, workspace-write, full-access"},
		{"no such network", "network = \"open\"\n", 1, 11, "none of on, off, loopback"},
		{"no such protect", "protect = \"yes\"\n", 1, 1, "none of strict, checked, off"},
		{"no such require", "require = \"full\"\n", 1, 1, "none of enforced, best-effort"},
		{"readable", "readable = \"some\"\n", 1, 12, `"all" or a list`},
		{"readable nothing", "readable = []\n", 1, 1, "nothing to read"},
		{"protection without match", "protected = [{ not_under = [] }]\n", 1, 14, "needs a match"},
		{"protection as number", "protected = [1]\n", 1, 14, "a pattern, or a table"},
		{"absolute pattern", "protected = [\n \"**/a\",\n \"/etc\"]\n", 3, 2, "relative to the writable roots"},
		{"pattern with ..", "protected = [\"a/../b\"]\n", 1, 1, "without empty parts"},
		{"pattern with //", "protected = [\"a//b\"]\n", 1, 1, "without empty parts"},
		{"pattern of all", "protected = [\"a/**\"]\n", 1, 1, "ends in a name"},
		{"malformed glob", "protected = [\"a[\"]\n", 1, 1, "malformed glob"},
		{"malformed hidden glob", "hide = [\"~/a[\"]\n", 1, 1, "malformed glob"},
		{"hidden glob with ..", "hide = [\"~/../a*\"]\n", 1, 1, "has no .."},
		{"exception is a path", "protected = [{ match = \"a\", not_under = [\"b/c\"] }]\n", 1, 1, "names of directories"},
		{"device elsewhere", "devices = [\"/etc/passwd\"]\n", 1, 1, "no path below /dev"},
		{"device by dots", "devices = [\"/dev/../etc/passwd\"]\n", 1, 1, "no path below /dev"},
		{"all devices", "devices = [\"/dev\"]\n", 1, 1, "no path below /dev"},
		{"empty path", "writable = [\"\"]\n", 1, 1, "names nothing"},
		{"NUL", "writable = [\"/a\\u0000b\"]\n", 1, 1, "NUL"},
		{"other home", "writable = [\"~root/x\"]\n", 1, 1, "own home"},
		{"unknown placeholder", "writable = [\"{tmp}/x\"]\n", 1, 1, "no placeholder {tmp}"},
		{"secret placeholder", "writable = [\"{env:GITHUB_TOKEN}\"]\n", 1, 1, "no placeholder {env:GITHUB_TOKEN}"},
		{"placeholder inside", "writable = [\"/a/{home}\"]\n", 1, 1, "beginning of a path only"},
		{"placeholder glued", "writable = [\"{home}x\"]\n", 1, 1, "a / must follow"},
		{"placeholder open", "writable = [\"{home\"]\n", 1, 1, "not closed"},
		{"brace alone", "writable = [\"a}\"]\n", 1, 1, "stands alone"},
		{"value with unknown placeholder", "[env.set]\nA = \"{x}\"\n", 2, 1, "no placeholder {x}"},
		{"variable of ours", "[env.set]\nWATTLE_SANDBOX = \"off\"\n", 2, 1, "reserved"},
		{"variable of ours passes", "[env]\npass = [\"WATTLE_*\"]\n", 2, 1, "reserved"},
		{"no name", "[env]\npass = [\"A=B\"]\n", 2, 1, "no name of a variable"},
		{"glob in a name", "[env]\npass = [\"A*B\"]\n", 2, 1, "no name of a variable"},
		{"description", "description = \"a\\nb\"\n", 1, 1, "printable"},
		{"syntax", "mode =\n", 1, 7, ""},
		{"open list", "writable = [\"a\"\nmode = \"read-only\"", 2, 1, ""},
		{"not UTF-8", "mode = \"\xff\"\n", 1, 9, "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := policies.ParseTOML("mine.toml", []byte(tc.doc))
			var e *policies.Error
			if !errors.As(err, &e) {
				t.Fatalf("accepted: %+v", d)
			}
			if e.Code != policies.CodeInvalid || e.Name != "mine.toml" || !strings.Contains(e.Msg, tc.msg) {
				t.Errorf("%+v", e)
			}
			if e.Line != tc.line || e.Column != tc.col {
				t.Errorf("at %d:%d, want %d:%d: %v", e.Line, e.Column, tc.line, tc.col, e)
			}
			if !strings.Contains(e.Excerpt, "~") || !strings.Contains(e.Detail(), e.Excerpt) {
				t.Errorf("no excerpt: %q", e.Excerpt)
			}
			if !cmp.Equal(d, policies.Document{}, cmpopts.EquateComparable(policies.Origin{})) {
				t.Errorf("a part of the document came out: %+v", d)
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	_, err := policies.ParseTOML("f", []byte("mode = \"read-only\"\r\n\n\twritable = [\"a\",\n\t\t7]\n"))
	var e *policies.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"read policy f:4:3: a string is expected here, not a number or date",
		`1| mode = "read-only"`,
		"2|",
		"3| \twritable = [\"a\",",
		"4| \t\t7]",
		" | \t\t~ a string is expected here, not a number or date",
	}, "\n")
	if diff := cmp.Diff(want, e.Detail()); diff != "" {
		t.Error(diff)
	}
}

func TestMalformedJSON(t *testing.T) {
	for _, tc := range []struct{ name, doc, msg string }{
		{"unknown", `{"writeable":[]}`, "unknown member /writeable"},
		{"other case", `{"Mode":"read-only"}`, "unknown member /Mode"},
		{"TOML's name", `{"unix_sockets":[]}`, "unknown member /unix_sockets"},
		{"duplicate", `{"network":"on","network":"off"}`, "/network is there twice"},
		{"duplicate variable", `{"env":{"set":{"A":"1","A":"2"}}}`, "/env/set/A is there twice"},
		{"unknown in a protection", `{"protected":[{"match":"a","Match":"b"}]}`, "unknown member /protected/0/Match"},
		{"unknown in a device", `{"devices":[{"path":"/dev/x","mode":1}]}`, "unknown member /devices/0/mode"},
		{"type", `{"writable":"a"}`, "/writable"},
		{"type of item", `{"writable":[1]}`, "/writable/0"},
		{"null item", `{"writable":[null]}`, "names nothing"},
		{"null protection", `{"protected":[null]}`, "names nothing"},
		{"mode", `{"mode":"write"}`, "none of read-only"},
		{"empty mode", `{"mode":""}`, "none of read-only"},
		{"readable", `{"readable":"none"}`, `"all" or a list`},
		{"readable nothing", `{"readable":[]}`, "nothing to read"},
		{"array", `[]`, ""},
		{"nothing", ``, ""},
		{"more", `{} {}`, "malformed"},
		{"surrogate", `{"writable":["\ud800"]}`, "malformed"},
		{"not UTF-8", "{\"writable\":[\"\xff\"]}", "malformed"},
		{"NUL", `{"writable":["/a\u0000"]}`, "NUL"},
		{"origin", `{"Origin":{}}`, "unknown member"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := policies.ParseJSON([]byte(tc.doc))
			var e *policies.Error
			if !errors.As(err, &e) {
				t.Fatalf("accepted: %+v", d)
			}
			if e.Code != policies.CodeInvalid || e.Name != "session" || !strings.Contains(e.Msg, tc.msg) {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	big := append([]byte("# "), bytes.Repeat([]byte("x"), 1<<20)...)
	if _, err := policies.ParseTOML("big", big); code(err) != policies.CodeInvalid {
		t.Error(err)
	}
	if _, err := policies.ParseJSON(append([]byte(" "), bytes.Repeat([]byte(" "), 1<<20)...)); code(err) != policies.CodeInvalid {
		t.Error(err)
	}
	many := policies.Document{Writable: policies.Items(slices.Repeat([]string{"/a"}, 4097)...)}
	if _, err := policies.Build(fixed(), fence.ReadOnly, many); code(err) != policies.CodeInvalid {
		t.Error(err)
	}
	// Keys cost go-toml time by the square of their number.
	for _, text := range []string{"k%d={a=1}\n", "a.b.c.%d=1\n", "[k%d]\n", "k%d=1\n"} {
		var b bytes.Buffer
		for i := 0; b.Len() < 1<<20-100; i++ {
			fmt.Fprintf(&b, text, i)
		}
		if _, err := policies.ParseTOML("keys", b.Bytes()); code(err) != policies.CodeInvalid || !strings.Contains(err.Error(), "keys") {
			t.Error(err)
		}
	}
	// Deep nesting and many keys are refused or read in time, never a crash.
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	if _, err := policies.ParseTOML("deep", []byte("a = "+deep)); code(err) != policies.CodeInvalid {
		t.Error(err)
	}
	if _, err := policies.ParseJSON([]byte(`{"writable":` + deep + `}`)); code(err) != policies.CodeInvalid {
		t.Error(err)
	}
}
