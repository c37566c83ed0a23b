package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/wattle-dev/wattle/policies"
)

// Config is what a person has set, for the daemon and for commands that work
// without one. It is immutable once it was read.
type Config struct {
	Trash  TrashConfig  `toml:"trash"`
	Limits LimitsConfig `toml:"limits"`

	// origins are where keys were set, by key.
	origins map[string]string
}

// TrashConfig is the table [trash].
type TrashConfig struct {
	// Enabled: what is deleted goes into the trash. Without it every delete is
	// outright.
	Enabled bool `toml:"enabled"`
}

// LimitsConfig is the table [limits].
type LimitsConfig struct {
	// Connections and Sessions are how many there may be at once.
	Connections int `toml:"connections"`
	Sessions    int `toml:"sessions"`
}

// DefaultConfig is what holds where nothing was set.
func DefaultConfig() Config {
	return Config{
		Trash:  TrashConfig{Enabled: true},
		Limits: LimitsConfig{Connections: defaultConnections, Sessions: defaultSessions},
	}
}

// Setting is one key with its value, and where that was set.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	// Origin is "default" or FILE:LINE.
	Origin string `json:"origin"`
}

// Settings are all keys, in a fixed order.
func (c *Config) Settings() []Setting {
	out := make([]Setting, len(configKeys))
	for i, k := range configKeys {
		out[i] = Setting{Key: k.name, Value: k.value(c), Origin: "default"}
		if at, ok := c.origins[k.name]; ok {
			out[i].Origin = at
		}
	}
	return out
}

// configKey is a key that there is. check says what is wrong with its value, or
// "".
type configKey struct {
	name  string
	value func(*Config) any
	check func(*Config) string
}

// configKeys are all keys, table by table. Their names are those of the tags
// above; the test of the configuration compares them.
var configKeys = []configKey{
	{"trash.enabled", func(c *Config) any { return c.Trash.Enabled }, nil},
	{"limits.connections", func(c *Config) any { return c.Limits.Connections }, func(c *Config) string { return count(c.Limits.Connections, 1<<16) }},
	{"limits.sessions", func(c *Config) any { return c.Limits.Sessions }, func(c *Config) string { return count(c.Limits.Sessions, 1<<20) }},
}

func count(n, most int) string {
	if n < 1 || n > most {
		return fmt.Sprintf("%d is not between 1 and %d", n, most)
	}
	return ""
}

// CodeConfig is the stable code of a [ConfigError]. It does not travel.
const CodeConfig = "CONFIG_INVALID"

// ConfigError says why a configuration file cannot be used.
type ConfigError struct {
	Path string
	// Line and Column count from 1, columns in bytes; 0 when the whole file is
	// meant.
	Line, Column int
	Msg          string
	// Excerpt shows the place, in several lines; "" if there is none.
	Excerpt string
	Err     error
}

// Error is one line: file, place, reason.
func (e *ConfigError) Error() string {
	s := "read configuration " + e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	return s + ": " + e.Msg
}

// Detail is Error and, below it, the excerpt: for a person at a terminal.
func (e *ConfigError) Detail() string {
	if e.Excerpt == "" {
		return e.Error()
	}
	return e.Error() + "\n" + e.Excerpt
}

// Unwrap gives the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// systemConfig is read before the user's file.
const systemConfig = "/etc/wattle/config.toml"

// LoadConfig reads the configuration. named is a file that a person named, which
// must be there and is the only one then; else WATTLE_CONFIG names one; else it
// is the system's file and above it the user's, and neither need be there.
// Errors are [*ConfigError].
func (p Places) LoadConfig(named string, getenv func(string) string) (Config, error) {
	if named == "" {
		named = getenv("WATTLE_CONFIG")
	}
	c := DefaultConfig()
	if named != "" {
		return c, c.readFile(named)
	}
	for _, path := range []string{systemConfig, filepath.Join(p.Config, "config.toml")} {
		if err := c.readFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	return c, nil
}

// maxConfig bounds a configuration file: what go-toml does about keys that come
// twice takes time by the square of their number.
const maxConfig = 64 << 10

func (c *Config) readFile(path string) error {
	bad := func(msg string, err error) error { return &ConfigError{Path: path, Msg: msg, Err: err} }
	// Look before opening: to open a FIFO would wait for its writer.
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad("there is no such file", err)
	case err != nil:
		return bad(rootCause(err), err)
	case !fi.Mode().IsRegular():
		return bad("it is no regular file", nil)
	case runtime.GOOS != "windows" && fi.Mode().Perm()&0o002 != 0:
		return bad(fmt.Sprintf("it can be written by everybody (mode %#o)", fi.Mode().Perm()), nil)
	}
	f, err := os.Open(path)
	if err != nil {
		return bad(rootCause(err), err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	switch {
	case err != nil:
		return bad(rootCause(err), err)
	case len(data) > maxConfig:
		return bad(fmt.Sprintf("it has more than %d bytes", maxConfig), nil)
	}
	return c.read(path, data)
}

// read lays a document over what is set. Nothing is changed by one that has an
// error.
func (c *Config) read(path string, data []byte) error {
	next := *c
	if err := toml.Unmarshal(data, &next); err != nil {
		e := &ConfigError{Path: path, Msg: err.Error(), Err: err}
		if de := (*toml.DecodeError)(nil); errors.As(err, &de) {
			e.Line, e.Column = de.Position()
			e.Excerpt = de.String()
			e.Msg = strings.TrimPrefix(e.Msg, "toml: ")
		}
		return e
	}
	// go-toml takes keys in any case, and leaves out what it does not know: the
	// spelling is looked at here, which also tells the places.
	w := configWalk{data: data, at: map[string]int{}}
	err := w.walk()
	at := func(offset, length int, msg string) error {
		line, column, text := policies.Excerpt(data, offset, length, msg)
		return &ConfigError{Path: path, Line: line, Column: column, Msg: msg, Excerpt: text}
	}
	if f := (*configFlaw)(nil); errors.As(err, &f) {
		return at(f.offset, f.length, f.Error())
	}
	if err != nil {
		return &ConfigError{Path: path, Msg: err.Error(), Err: err}
	}
	next.origins = map[string]string{}
	for k, v := range c.origins {
		next.origins[k] = v
	}
	for _, k := range configKeys {
		offset, set := w.at[k.name]
		if !set {
			continue
		}
		next.origins[k.name] = path + ":" + strconv.Itoa(1+bytes.Count(data[:offset], []byte("\n")))
		if k.check == nil {
			continue
		}
		if msg := k.check(&next); msg != "" {
			last := k.name[strings.LastIndexByte(k.name, '.')+1:]
			return at(offset, len(last), k.name+": "+msg)
		}
	}
	*c = next
	return nil
}

// configFlaw is a key that there is not.
type configFlaw struct {
	offset, length int
	key            string
}

func (f *configFlaw) Error() string {
	msg := "there is no key " + strconv.Quote(f.key)
	table, _, _ := strings.Cut(f.key, ".")
	var known []string
	for _, k := range configKeys {
		in, name, _ := strings.Cut(k.name, ".")
		switch {
		case strings.EqualFold(k.name, f.key):
			return msg + ", did you mean " + k.name
		case strings.EqualFold(in, f.key):
			return msg + ", did you mean the table [" + in + "]"
		case in == table:
			known = append(known, name)
		}
	}
	if len(known) > 0 {
		return msg + "; in [" + table + "] there are " + strings.Join(known, ", ")
	}
	for _, k := range configKeys {
		if in, _, _ := strings.Cut(k.name, "."); len(known) == 0 || known[len(known)-1] != "["+in+"]" {
			known = append(known, "["+in+"]")
		}
	}
	return msg + "; there are " + strings.Join(known, ", ")
}

// configWalk goes over the keys of a document that go-toml has accepted.
type configWalk struct {
	data []byte
	p    unstable.Parser
	at   map[string]int // keys that are set, and the offset of their last part
}

func (w *configWalk) walk() error {
	w.p.Reset(w.data)
	table := ""
	for w.p.NextExpression() {
		e := w.p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var err error
			if table, _, err = w.path("", e.Key()); err != nil {
				return err
			}
		case unstable.KeyValue:
			if err := w.keyValue(table, e); err != nil {
				return err
			}
		}
	}
	return w.p.Error()
}

// path is the whole key, and the offset of its last part.
func (w *configWalk) path(table string, it unstable.Iterator) (key string, offset int, err error) {
	key = table
	for it.Next() {
		k := it.Node()
		if key != "" {
			key += "."
		}
		key += string(k.Data)
		offset = int(k.Raw.Offset)
		if !knownKey(key) {
			return "", 0, &configFlaw{offset, int(k.Raw.Length), key}
		}
	}
	return key, offset, nil
}

func (w *configWalk) keyValue(table string, e *unstable.Node) error {
	key, offset, err := w.path(table, e.Key())
	if err != nil {
		return err
	}
	v := e.Value()
	if v.Kind != unstable.InlineTable {
		w.at[key] = offset
		return nil
	}
	for it := v.Children(); it.Next(); {
		if err := w.keyValue(key, it.Node()); err != nil {
			return err
		}
	}
	return nil
}

// knownKey tells whether there is such a key, or a table of that name.
func knownKey(key string) bool {
	for _, k := range configKeys {
		if k.name == key || strings.HasPrefix(k.name, key+".") {
			return true
		}
	}
	return false
}
