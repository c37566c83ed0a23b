package provider

import "strings"

// rejected is the error of a patch that was not applied, with the report on
// every operation.
func (p *patching) rejected(err error) error {
	err = p.mapped(err)
	e := *(err.(*Error)) // mapped gives no other
	if p.failing != nil && p.failing.report.State != ApplyFailed {
		p.blame(err)
	}
	r := p.result()
	e.Cause = &PatchError{Report: r, Cause: e.Cause}
	return &e
}

// result is the report as it stands.
func (p *patching) result() PatchReport {
	r := PatchReport{DryRun: p.o.DryRun, Operations: make([]ApplyOperation, 0, len(p.steps))}
	failed := false
	for _, s := range p.steps {
		r.Operations = append(r.Operations, s.report)
		failed = failed || s.report.State == ApplyFailed
	}
	r.Stopped = failed && !p.atomic
	r.Summary = summary(r)
	return r
}

// summary is the text of Codex: a header, then the files that were added,
// modified and deleted, with the paths as written. It is empty when nothing
// was done.
func summary(r PatchReport) string {
	state, header := ApplyDone, "Success. Updated the following files:\n"
	switch {
	case r.DryRun:
		state, header = ApplyPlanned, "Dry run. Would update the following files:\n"
	case r.Stopped:
		header = "Stopped at a failure. Updated the following files:\n"
	}
	var lines [3]strings.Builder
	for _, o := range r.Operations {
		if o.State != state {
			continue
		}
		letter, path, group := "M ", o.Path, 1
		switch o.Kind {
		case "add":
			letter, group = "A ", 0
		case "delete":
			letter, group = "D ", 2
		case kindMove:
			path = o.Destination
		}
		lines[group].WriteString(letter + path + "\n")
	}
	list := lines[0].String() + lines[1].String() + lines[2].String()
	if list == "" {
		return ""
	}
	return header + list
}

// bounded is a text as reports have it, nil when it is not below the bound.
func (c *call) bounded(text string) *string {
	if int64(len(text)) >= c.basisMax {
		return nil
	}
	text = toLF(text)
	return &text
}
