package policies

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Library finds policies by name: the shipped presets, and the user's files.
type Library struct {
	// Dirs hold files NAME.toml, first match wins: the user's
	// ($XDG_CONFIG_HOME/wattle/policies), then the system's. Absolute.
	Dirs []string
	// Workspace is the one that policies are looked up for. A file in it is
	// never read. "" only where no workspace is meant, as in `policy list`.
	Workspace string
}

// Session gives the documents of a session that names these policies, in
// order: the defaults, then each named one once. Append inline documents to
// it and hand all to [Build].
func (l Library) Session(names ...string) ([]Document, error) {
	docs := Defaults()
	seen := slices.Clone(defaults)
	for _, n := range names {
		if slices.Contains(seen, n) {
			continue
		}
		seen = append(seen, n)
		d, err := l.Load(n)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// Load gives the policy of that name. Names are lower-case letters, digits,
// `-`, `_` and `.`, and begin with a letter or digit: no path gets through.
//
// A file that has the name of a preset is an error: read instead of the
// preset it would open what the preset closes, and left aside it would not
// close what its author thinks.
func (l Library) Load(name string) (Document, error) {
	d, _, err := l.find(name)
	return d, err
}

// Text gives the TOML of that policy.
func (l Library) Text(name string) (string, error) {
	_, text, err := l.find(name)
	return string(text), err
}

func (l Library) find(name string) (Document, []byte, error) {
	if !validName(name) {
		return Document{}, nil, &Error{Code: CodeNotFound, Name: name, Msg: "a policy's name is made of a-z, 0-9, -, _ and . and begins with a letter or digit"}
	}
	p := findPreset(name)
	for _, dir := range l.Dirs {
		path := filepath.Join(dir, name+".toml")
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if p != nil {
			return Document{}, nil, &Error{Code: CodeRefused, Name: name, Msg: path + " has the name of a shipped preset: rename it"}
		}
		return l.file(path, name)
	}
	if p != nil {
		return p.doc(), p.text, nil
	}
	return Document{}, nil, &Error{Code: CodeNotFound, Name: name, Msg: "no preset and no policy file has this name"}
}

// LoadFile reads a policy file by its path: what a person names on a command
// line. Clients name policies only.
func (l Library) LoadFile(path string) (Document, error) {
	d, _, err := l.file(path, path)
	return d, err
}

// List gives the presets and the user's files. A file that cannot be used is
// in the list, with its problem.
func (l Library) List() []Info {
	out := Presets()
	known := map[string]bool{}
	for _, dir := range l.Dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, Info{Name: filepath.Base(dir), Source: dir, Problem: err.Error()})
		}
		for _, e := range entries {
			name, isTOML := strings.CutSuffix(e.Name(), ".toml")
			if !isTOML || known[name] {
				continue
			}
			known[name] = true
			i := Info{Name: name, Source: filepath.Join(dir, e.Name())}
			if d, err := l.Load(name); err != nil {
				i.Problem = err.Error()
			} else {
				i.Description = d.Description
			}
			out = append(out, i)
		}
	}
	return out
}

// file reads one file that must be trusted.
func (l Library) file(path, name string) (Document, []byte, error) {
	refuse := func(code, msg string, err error) (Document, []byte, error) {
		return Document{}, nil, &Error{Code: code, Name: name, Msg: msg, Err: err}
	}
	place, err := l.trusted(path)
	switch {
	case errors.Is(err, errInWorkspace):
		return refuse(CodeRefused, "a policy in the workspace is never read: what runs in the fence could have written it", err)
	case errors.Is(err, fs.ErrNotExist):
		return refuse(CodeNotFound, path+" does not exist", err)
	case err != nil:
		return refuse(CodeInvalid, err.Error(), err)
	}
	// Look before opening: to open a FIFO would wait for its writer.
	before, err := os.Lstat(place)
	if err != nil {
		return refuse(CodeInvalid, err.Error(), err)
	}
	if !before.Mode().IsRegular() {
		return refuse(CodeRefused, place+" is no regular file", nil)
	}
	f, err := os.Open(place)
	if err != nil {
		return refuse(CodeInvalid, err.Error(), err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return refuse(CodeInvalid, err.Error(), err)
	}
	if !os.SameFile(before, fi) {
		return refuse(CodeRefused, place+" was replaced while it was read", nil)
	}
	if writableByOthers(fi) {
		return refuse(CodeRefused, fmt.Sprintf("%s can be written by everybody (mode %#o)", place, fi.Mode().Perm()), nil)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return refuse(CodeInvalid, err.Error(), err)
	}
	d, err := ParseTOML(name, data)
	return d, data, err
}

func validName(name string) bool {
	for i, c := range name {
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return name != "" && len(name) <= 100
}
