package policies

import (
	"slices"

	"github.com/wattle-dev/wattle/fence"
)

// Build merges documents into one policy: presets first, then files, then the
// session, each kind in the order given; the same preset or file counts once.
//
// mode is what the session asks for; "" takes the mode of the last document
// that names one, else read-only. Errors are [*Error] with code
// POLICY_INVALID. Roots that open too much are refused by fence.New.
//
// The variables that describe the fence to the command (WATTLE_SANDBOX*) are
// set at each start by the sandbox, which knows that start's mode.
//
// Build is pure, and safe for concurrent use.
func Build(c Context, mode fence.Mode, docs ...Document) (fence.Policy, error) {
	b := builder{c: c, mode: mode, p: fence.Policy{
		Workspace: c.Workspace, Scratch: c.Scratch, Own: slices.Clone(c.Own), Home: c.Home,
	}}
	docs, err := inOrder(docs)
	if err != nil {
		return fence.Policy{}, err
	}
	for i := range docs {
		b.o = docs[i].Origin
		b.merge(&docs[i])
	}
	b.finish()
	if b.err != nil {
		return fence.Policy{}, b.err
	}
	ec := c
	if b.p.Mode == fence.ReadOnly {
		// Neither is writable then. A command's own temporary directory may take
		// their place: Environment, with that directory as both.
		ec.Cache = ""
		if !b.p.ScratchInReadOnly {
			ec.Scratch = ""
		}
	}
	b.p.Env = environment(ec, docs)
	return b.p, nil
}

// Environment gives the environment of the documents alone, for other
// directories than the session's: a command in read-only has a temporary
// directory of its own, which is then Context.Scratch and Context.Cache.
func Environment(c Context, docs ...Document) (fence.Environment, error) {
	docs, err := inOrder(docs)
	if err != nil {
		return fence.Environment{}, err
	}
	return environment(c, docs), nil
}

func environment(c Context, docs []Document) fence.Environment {
	e := fence.Environment{Set: map[string]string{}}
	for _, d := range docs {
		for _, n := range d.Env.Pass {
			if !slices.Contains(e.Pass, n.Text) {
				e.Pass = append(e.Pass, n.Text)
			}
		}
		for name, v := range d.Env.Set {
			// A later value replaces an earlier one, also by nothing: a tool
			// must not fall back to what a policy meant to replace.
			if text, ok := c.value(v.Text); ok {
				e.Set[name] = text
			} else {
				delete(e.Set, name)
			}
		}
	}
	return e
}

// inOrder checks the documents and sorts them for merging.
func inOrder(docs []Document) ([]Document, error) {
	docs = slices.Clone(docs)
	for i := range docs {
		if err := docs[i].Check(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(docs, func(a, b Document) int { return a.Origin.rank() - b.Origin.rank() })
	seen := map[Origin]bool{}
	return slices.DeleteFunc(docs, func(d Document) bool {
		again := seen[d.Origin]
		seen[d.Origin] = d.Origin != Origin{}
		return again
	}), nil
}
