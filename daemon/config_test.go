package daemon_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/wattle-dev/wattle/daemon"
)

func load(t *testing.T, text string) (daemon.Config, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := daemon.Places{}.LoadConfig(path, func(string) string { return "" })
	return c, path, err
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name, text         string
		enabled            bool
		sessions           int
		trashAt, sessionAt string // line, or "default"
	}{
		{"empty", "", true, 16384, "default", "default"},
		{"comment", "# nothing\n\n", true, 16384, "default", "default"},
		{"off", "[trash]\nenabled = false\n", false, 16384, ":2", "default"},
		{"both", "[limits]\nsessions = 5\n\n[trash]\nenabled = false", false, 5, ":5", ":2"},
		{"dotted", "trash.enabled = false\nlimits.sessions = 1", false, 1, ":1", ":2"},
		{"inline", "limits = { sessions = 7 }\ntrash = { enabled = true }", true, 7, ":2", ":1"},
		{"quoted", "[\"trash\"]\n'enabled' = false", false, 16384, ":2", "default"},
		{"empty tables", "[trash]\n[limits]", true, 16384, "default", "default"},
	} {
		c, path, err := load(t, tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if c.Trash.Enabled != tt.enabled || c.Limits.Sessions != tt.sessions || c.Limits.Connections != 1024 {
			t.Errorf("%s: %+v", tt.name, c)
		}
		for _, s := range c.Settings() {
			want := map[string]string{"trash.enabled": tt.trashAt, "limits.sessions": tt.sessionAt, "limits.connections": "default"}[s.Key]
			if strings.HasPrefix(want, ":") {
				want = path + want
			}
			if s.Origin != want {
				t.Errorf("%s: %s comes from %s, want %s", tt.name, s.Key, s.Origin, want)
			}
		}
	}
}

// A document is taken whole or not at all, and the error says where and what.
func TestConfigErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text   string
		line, column int
		says         string
	}{
		{"unknown key", "[trash]\nenabled = false\nenable = true", 3, 1, `there is no key "trash.enable"; in [trash] there are enabled`},
		{"unknown table", "\n[bin]\nx = 1", 2, 2, `there is no key "bin"; there are [trash], [limits]`},
		{"empty unknown table", "[bin]", 1, 2, `there is no key "bin"`},
		{"unknown below a key", "[trash.enabled.x]", 0, 0, ""},
		{"case of a key", "[trash]\n  Enabled = false", 2, 3, `there is no key "trash.Enabled", did you mean trash.enabled`},
		{"case of a table", "[Trash]\nenabled = false", 1, 2, `did you mean the table [trash]`},
		{"inline", "trash = { enabled = true, y = 1 }", 1, 27, `"trash.y"`},
		{"dotted", "limits.session = 1", 1, 8, `"limits.session"`},
		{"type", "[trash]\nenabled = \"no\"", 2, 11, "string"},
		{"number for a table", "trash = 5", 1, 9, ""},
		{"list of tables", "[[trash]]\nenabled = false", 0, 0, ""},
		{"fraction", "[limits]\nsessions = 1.5", 2, 12, ""},
		{"too small", "[limits]\nsessions = 0", 2, 1, "limits.sessions: 0 is not between 1 and"},
		{"too large", "limits = { connections = 65537 }", 1, 12, "limits.connections: 65537 is not between 1 and 65536"},
		{"overflow", "[limits]\nsessions = 99999999999999999999", 2, 12, ""},
		{"twice", "[trash]\nenabled = false\nenabled = true", 3, 1, ""},
		{"syntax", "[trash\n", 1, 0, ""},
		{"no text", "a = \"\xff\"", 1, 0, ""},
		{"too long", strings.Repeat("#\n", 40<<10), 0, 0, "more than 65536 bytes"},
	} {
		c, path, err := load(t, tt.text)
		var e *daemon.ConfigError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v, %+v", tt.name, err, c)
			continue
		}
		if c.Trash != daemon.DefaultConfig().Trash || c.Limits != daemon.DefaultConfig().Limits {
			t.Errorf("%s: half of it was taken: %+v", tt.name, c)
		}
		if e.Path != path || tt.line != 0 && e.Line != tt.line || tt.column != 0 && e.Column != tt.column || !strings.Contains(e.Msg, tt.says) {
			t.Errorf("%s: %d:%d %s", tt.name, e.Line, e.Column, e.Msg)
		}
		if e.Line > 0 && (e.Excerpt == "" || !strings.Contains(e.Detail(), "~") && !strings.Contains(e.Detail(), "^")) {
			t.Errorf("%s: no excerpt in %q", tt.name, e.Detail())
		}
	}
}

// There is a setting for every field, under the name that the file has for it.
func TestConfigSettings(t *testing.T) {
	var want []string
	root := reflect.TypeFor[daemon.Config]()
	for i := range root.NumField() {
		if table := root.Field(i); table.IsExported() {
			for j := range table.Type.NumField() {
				want = append(want, table.Tag.Get("toml")+"."+table.Type.Field(j).Tag.Get("toml"))
			}
		}
	}
	var got []string
	c := daemon.DefaultConfig()
	for _, s := range c.Settings() {
		got = append(got, s.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("settings %q, fields %q", got, want)
	}
}

// Which file is read, and which is refused.
func TestConfigFiles(t *testing.T) {
	dir := t.TempDir()
	p := daemon.Places{Config: dir}
	env := map[string]string{}
	read := func(named string) (daemon.Config, error) {
		return p.LoadConfig(named, func(k string) string { return env[k] })
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if c, err := read(""); err != nil || !c.Trash.Enabled {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	if _, err := read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was named and is not there: %v", err)
	}
	write("config.toml", "trash.enabled = false\nlimits.sessions = 3", 0o644)
	if c, err := read(""); err != nil || c.Trash.Enabled {
		t.Errorf("the user's: %+v, %v", c, err)
	}
	other := write("other.toml", "limits.sessions = 4", 0o600)
	if c, err := read(other); err != nil || !c.Trash.Enabled || c.Limits.Sessions != 4 {
		t.Errorf("another is the only one: %+v, %v", c, err)
	}
	env["WATTLE_CONFIG"] = other
	if c, err := read(""); err != nil || c.Limits.Sessions != 4 {
		t.Errorf("WATTLE_CONFIG: %+v, %v", c, err)
	}
	if c, err := read(filepath.Join(dir, "config.toml")); err != nil || c.Limits.Sessions != 3 {
		t.Errorf("the flag comes first: %+v, %v", c, err)
	}
	if _, err := read(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
	if runtime.GOOS != "windows" {
		if _, err := read(write("open.toml", "", 0o666)); err == nil || !strings.Contains(err.Error(), "by everybody") {
			t.Errorf("a file of everybody: %v", err)
		}
	}
}
