package fence

// View is a fence as a client may see it (FenceView of PROTOCOL section 2).
// Lists are never null.
type View struct {
	Mode          Mode     `json:"mode"`
	Workspace     string   `json:"workspace"`
	WritableRoots []string `json:"writableRoots"`
	// Protected are patterns relative to the writable roots, Hidden absolute
	// paths and patterns.
	Protected []string `json:"protected"`
	Hidden    []string `json:"hidden"`
	// Readable is ["all"] or the list of readable roots.
	Readable []string `json:"readable"`
	Network  Network  `json:"network"`
	Scratch  string   `json:"scratch,omitzero"`
	// TrashCommands: what commands remove goes into the trash first.
	TrashCommands bool `json:"trashCommands,omitzero"`
	// Overrides names the defaults that a policy changed.
	Overrides []string  `json:"overrides"`
	Skipped   []Skipped `json:"skipped"`
}

// View describes the fence.
func (f *Fence) View() View {
	v := View{
		Mode: f.policy.Mode, Workspace: f.policy.Workspace, WritableRoots: f.WritableRoots(),
		Protected: []string{}, Hidden: []string{}, Readable: []string{"all"},
		Network: f.policy.Network, Scratch: f.policy.Scratch, TrashCommands: f.policy.TrashCommands,
		Overrides: append([]string{}, f.policy.Overrides...), Skipped: append([]Skipped{}, f.skipped...),
	}
	for _, p := range f.protected {
		v.Protected = append(v.Protected, p.text)
	}
	for _, h := range f.hidden {
		v.Hidden = append(v.Hidden, h.path)
	}
	if f.readable != nil {
		v.Readable = []string{}
		for _, r := range f.readable {
			v.Readable = append(v.Readable, r.path)
		}
	}
	return v
}
