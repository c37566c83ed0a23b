package provider_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/provider"
)

// The names on the wire are fixed (PROTOCOL section 2, fs-contract section 1).
func TestWireNames(t *testing.T) {
	n, text := int64(3), "old"
	target := provider.Target{TargetKey: "/w/f", DisplayPath: "/w/l"}
	for want, v := range map[string]any{
		`{"targetKey":"/w/f","displayPath":"/w/l"}`:  target,
		`{"version":"1A","type":"file","size":3}`:    provider.Info{Version: "1A", Type: provider.TypeFile, Size: &n},
		`{"version":"1A","type":"symlink"}`:          provider.PathInfo{Version: "1A", Type: provider.TypeSymlink},
		`{"kind":"createIfAbsent"}`:                  provider.WriteIntent{Kind: provider.CreateIfAbsent},
		`{"kind":"replaceIfVersion","version":"1A"}`: provider.WriteIntent{Kind: provider.ReplaceIfVersion, Version: "1A"},
		`{"version":"1B"}`:                           provider.VersionGuard{Version: "1B"},
		`{"oldString":"a","newString":""}`:           provider.EditRequest{OldString: "a"},
		`{"text":"a","version":"1A","bom":true}`:     provider.TextContent{Text: "a", Version: "1A", BOM: true},
		`{"code":"FS_PERMISSION_DENIED","op":"writeText","path":"/w/l","errno":"EACCES","syscall":"openat"}`: &provider.Error{
			Code: provider.CodePermissionDenied, Op: "writeText", Path: "/w/l", Errno: "EACCES", Syscall: "openat", Cause: syscall.EACCES},
		`{"name":"f","type":"other","target":{"targetKey":"/w/f","displayPath":"/w/l"}}`: provider.DirEntry{Name: "f", Type: provider.TypeOther, Target: target},
		`{"operation":"create","version":"1A","before":null,"after":"x"}`:                provider.WriteOutcome{Operation: provider.OperationCreate, Version: "1A", After: "x"},
		`{"operation":"update","version":"1A","before":"old","after":"x","linksBroken":1,"metadataLost":["owner"]}`: provider.WriteOutcome{
			Operation: provider.OperationUpdate, Version: "1A", Before: &text, After: "x", LinksBroken: 1, MetadataLost: []string{"owner"}},
		`{"version":"1A","before":"","after":"x"}`: provider.EditOutcome{Version: "1A", After: "x"},
	} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != want {
			t.Errorf("%s (%v)\nwant %s", b, err, want)
		}
	}
	var o provider.WriteOptions
	must(t, json.Unmarshal([]byte(`{"expected":{"kind":"replaceIfVersion","version":"1A"},"overrideReadOnly":true,"mode":384,"dropBom":true}`), &o, json.RejectUnknownMembers(true)))
	if o.Expected == nil || o.Expected.Kind != provider.ReplaceIfVersion || !o.OverrideReadOnly || o.Mode == nil || *o.Mode != 0o600 || !o.DropBOM {
		t.Errorf("%+v", o)
	}
}

func TestErrorsAreFound(t *testing.T) {
	d := &fence.Denial{Code: fence.CodeSandboxDenied, Path: "/real/f", Mode: fence.ReadOnly, Rule: fence.RuleReadOnly, Hint: "ask"}
	var err error = &provider.Error{Code: provider.CodeSandboxDenied, Op: "writeText", Path: "/shown/f", Cause: d}
	var e *provider.Error
	var got *fence.Denial
	if !errors.As(err, &e) || !errors.As(err, &got) || got != d {
		t.Errorf("%v", err)
	}
	if !errors.Is(err, &provider.Error{Code: provider.CodeSandboxDenied}) || errors.Is(err, &provider.Error{Code: provider.CodeIOError}) {
		t.Error("errors.Is does not go by the code")
	}
	if want := "writeText /shown/f: denied in read-only (read only); ask"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if provider.CodeOf(nil) != "" || provider.CodeOf(syscall.EACCES) != "" || len(provider.Codes) != 16 {
		t.Error("codes")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []provider.Config{
		{Cwd: "relative"}, {DiffBasisMaxBytes: -1}, {EditMaxBytes: -1}, {ListMaxEntries: -1}, {NewFileMode: 0o1777},
	} {
		if _, err := provider.NewLocal(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	l, err := provider.NewLocal(provider.Config{})
	must(t, err)
	must(t, l.Close())
}
