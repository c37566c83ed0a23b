package policies

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed *.toml
var shipped embed.FS

// defaults are the presets that every session has, in the order of merging.
var defaults = []string{"base", "secrets", "git", "agents"}

// Info describes a policy that can be named.
type Info struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Source is "preset", or the path of the file.
	Source string `json:"source"`
	// Default: every session has it without naming it.
	Default bool `json:"default"`
	// Problem says why a file cannot be used, or is "".
	Problem string `json:"problem,omitzero"`
}

// preset is a shipped document and its text, parsed when it is first needed: a
// command needs the defaults only. That all parse is a test's duty; a binary
// in which one does not must not run without it.
type preset struct {
	name string
	text []byte
	doc  func() Document
}

var presets = sync.OnceValue(func() []preset {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("read shipped policies: %v", err))
	}
	var out []preset
	for _, e := range entries {
		text, err := shipped.ReadFile(e.Name())
		if err != nil {
			panic(fmt.Sprintf("read shipped policies: %v", err))
		}
		name := strings.TrimSuffix(e.Name(), ".toml")
		out = append(out, preset{name: name, text: text, doc: sync.OnceValue(func() Document {
			d, err := parseTOML(Origin{originPreset, name}, text)
			if err != nil {
				panic(fmt.Sprintf("read shipped policies: %v", err))
			}
			return d
		})})
	}
	return out
})

func findPreset(name string) *preset {
	all := presets()
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// Presets lists the shipped presets: the defaults first, in the order of
// merging, then the others by name.
func Presets() []Info {
	var out []Info
	for _, p := range presets() {
		out = append(out, Info{Name: p.name, Description: p.doc().Description, Source: "preset", Default: slices.Contains(defaults, p.name)})
	}
	order := func(i Info) int {
		if n := slices.Index(defaults, i.Name); n >= 0 {
			return n
		}
		return len(defaults)
	}
	slices.SortStableFunc(out, func(a, b Info) int { return order(a) - order(b) })
	return out
}

// Preset gives a shipped preset. The document is shared: do not change it.
func Preset(name string) (Document, error) {
	if p := findPreset(name); p != nil {
		return p.doc(), nil
	}
	return Document{}, &Error{Code: CodeNotFound, Name: name, Msg: "there is no such preset"}
}

// Defaults are the documents of a session that names no policy.
func Defaults() []Document {
	out := make([]Document, 0, len(defaults))
	for _, n := range defaults {
		d, err := Preset(n)
		if err != nil {
			panic(err) // the defaults are shipped; a test says so
		}
		out = append(out, d)
	}
	return out
}
