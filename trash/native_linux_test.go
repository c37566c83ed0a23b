package trash_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/internal/anchor"
	"github.com/wattle-dev/wattle/trash"
	"github.com/wattle-dev/wattle/trash/record"
)

// A directory of records to which others may write, or that is reached through a
// link of theirs, is not used, and then nothing is trashed.
func TestNativeUnfitRecords(t *testing.T) {
	for name, spoil := range map[string]func(l *natLab){
		"others may write": func(l *natLab) {
			must(t, os.MkdirAll(l.Records, 0o700))
			must(t, os.Chmod(l.Records, 0o777))
		},
		"a link": func(l *natLab) {
			must(t, os.MkdirAll(filepath.Dir(l.Records), 0o700))
			must(t, os.Symlink(l.T, l.Records))
		},
		"a file": func(l *natLab) {
			must(t, os.MkdirAll(filepath.Dir(l.Records), 0o700))
			must(t, os.WriteFile(l.Records, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newNatLab(t)
			spoil(l)
			_, err := l.try(context.Background(), l.write("f", "x"))
			natError(t, err, record.CodeUnavailable, record.Failed, record.ReasonBackend)
			l.expect("W/f", "x")
			if n := l.calls.Load(); n != 0 {
				t.Errorf("the system was asked %d times", n)
			}
			all, err := l.bin.List(context.Background())
			must(t, err)
			if len(all.Problems) != 1 || len(all.Entries) != 0 {
				t.Errorf("listed %+v", all)
			}
		})
	}
}

// Names that are no UTF-8 would reach the system as others; what is no file,
// directory or link is refused. Nothing is touched.
func TestNativeStrange(t *testing.T) {
	l := newNatLab(t)
	bad := l.write("bad\xff", "x")
	_, err := l.try(context.Background(), bad)
	natError(t, err, record.CodeRejected, record.Rejected, record.ReasonInvalidPath)
	pipe := filepath.Join(l.W, "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	_, err = l.try(context.Background(), pipe)
	natError(t, err, record.CodeRejected, record.Rejected, record.ReasonUnsupportedType)
	if l.calls.Load() != 0 || l.state("W/bad\xff") != "x" || l.state("W/pipe") != "special" {
		t.Error("it was touched")
	}
}

// Where the trash may not be looked into, the system's word counts when the
// thing is gone; the entry is no candidate for anything.
func TestNativeHidden(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIP: nothing is hidden from root; it runs again as a normal user")
	}
	l := newNatLab(t)
	l.do = func(p string) (string, error) {
		to, err := l.move(p)
		return to, errors.Join(err, os.Chmod(l.T, 0))
	}
	t.Cleanup(func() { _ = os.Chmod(l.T, 0o700) })
	e := l.put(l.write("f", "x"))
	if got := l.one(); got.State != record.Broken || got.ID != e.ID {
		t.Errorf("listed as %+v", got)
	}
	_, err := l.bin.Restore(context.Background(), e.ID, trash.RestoreOptions{})
	natError(t, err, "FS_PERMISSION_DENIED", record.Failed, record.ReasonOperationFailed)
	done, err := l.bin.Empty(context.Background(), trash.EmptyOptions{})
	must(t, err)
	if len(done.Left) != 1 || len(l.list()) != 1 {
		t.Errorf("emptied %+v", done)
	}
	must(t, os.Chmod(l.T, 0o700))
	if got := l.one(); got.State != record.OK {
		t.Errorf("listed as %+v", got)
	}
	_, err = l.bin.Restore(context.Background(), e.ID, trash.RestoreOptions{})
	must(t, err)
	l.expect("W/f", "x")
}

// program writes a shell script that stands for osascript.
func program(t *testing.T, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "osascript")
	must(t, os.WriteFile(p, []byte("#!/bin/sh\n"+text), 0o755))
	return p
}

var nastyNames = []string{
	"plain", "a b", `quo"te`, "apo'strophe", "line\nbreak", "cr\rlf", "$(touch pwned)", "`touch pwned`", "-rf", "--", "-e", "é日本語",
	"%41%00", `back\slash`, "${HOME}", ";&|<>*?[]", "*); throw 1; ('", "\u2028", " ", "~", "tab\t.",
}

// TestOsascriptArguments runs the real command line against a program that
// writes down what it got: the script is the same for every path, and the path
// is one argument, byte for byte.
func TestOsascriptArguments(t *testing.T) {
	var script string
	for _, name := range nastyNames {
		l := newNatLab(t)
		got := filepath.Join(l.Dir, "argv")
		// "$5" is moved as a file manager would; the answer is the script's form.
		osa := program(t, `for a; do printf '%s\0' "$a"; done > '`+got+`'
mv -T -- "$5" '`+l.T+`/landed' || exit 1
printf '{"landing":"%s/landed"}\n' '`+l.T+`'
`)
		bin := trash.NewScriptedBin(l.config(), osa)
		p := l.write(name, "x")
		d, err := anchor.OpenDir(l.W)
		must(t, err)
		want, err := d.Lstat(name)
		must(t, err)
		e, err := bin.Put(context.Background(), d, name, p, want, false)
		d.Close()
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		b, err := os.ReadFile(got)
		must(t, err)
		args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if len(args) != 5 || args[0] != "-l" || args[1] != "JavaScript" || args[2] != "-e" || args[4] != p {
			t.Errorf("%q: arguments %q", name, args)
			continue
		}
		if script == "" {
			script = args[3]
		}
		if args[3] != script || args[3] != trash.TrashScript {
			t.Errorf("%q: another script", name)
		}
		if _, err := bin.Restore(context.Background(), e.ID, trash.RestoreOptions{}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		l.expect("W/"+name, "x")
		if l.state("W/pwned") != "absent" {
			t.Errorf("%q was run", name)
		}
	}
}

// TestOsascriptFailures: whatever a program says or does, the file is in place
// or the outcome is unknown.
func TestOsascriptFailures(t *testing.T) {
	for name, row := range map[string]struct {
		script  string // $T is the trash
		code    string
		outcome record.Outcome
		file    string
	}{
		"an error of macOS": {`echo '{"domain":"NSCocoaErrorDomain","code":513,"message":"no permission"}'`, "FS_PERMISSION_DENIED", record.Failed, "x"},
		"no trash there":    {`echo '{"domain":"NSCocoaErrorDomain","code":3328,"message":"unsupported"}'`, record.CodeUnavailable, record.Failed, "x"},
		"garbage":           {`echo hello`, record.CodeFailed, record.Failed, "x"},
		"nothing":           {``, record.CodeFailed, record.Failed, "x"},
		"a bad status":      {`echo "execution error" >&2; exit 1`, record.CodeFailed, record.Failed, "x"},
		"success and a bad status": {`mv "$5" "$T/f"; printf '{"landing":"%s/f"}\n' "$T"; exit 1`,
			record.CodeUnknown, record.Unknown, "absent"},
		"killed":                {`kill -9 $$`, record.CodeFailed, record.Failed, "x"},
		"moved, then killed":    {`mv "$5" "$T/f"; kill -9 $$`, record.CodeUnknown, record.Unknown, "absent"},
		"moved, then garbage":   {`mv "$5" "$T/f"; echo ok`, record.CodeUnknown, record.Unknown, "absent"},
		"says it did, did not":  {`printf '{"landing":"%s/f"}\n' "$T"`, record.CodeUnknown, record.Unknown, "x"},
		"moved elsewhere":       {`mv "$5" "$T/g"; printf '{"landing":"%s/f"}\n' "$T"`, record.CodeUnknown, record.Unknown, "absent"},
		"endless output":        {`yes '{"landing":"/x"}' | head -c 5000000`, record.CodeFailed, record.Failed, "x"},
		"a second line":         {`mv "$5" "$T/f"; printf '{"landing":"%s/f"}\n{}\n' "$T"`, record.CodeUnknown, record.Unknown, "absent"},
		"erased it":             {`rm "$5"; printf '{"landing":"%s/f"}\n' "$T"`, record.CodeUnknown, record.Unknown, "absent"},
		"an error after moving": {`mv "$5" "$T/f"; echo '{"domain":"NSCocoaErrorDomain","code":513,"message":""}'`, record.CodeUnknown, record.Unknown, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newNatLab(t)
			l.bin = trash.NewScriptedBin(l.config(), program(t, "T='"+l.T+"'\n"+row.script+"\n"))
			_, err := l.try(context.Background(), l.write("f", "x"))
			var e *record.Error
			if !errors.As(err, &e) || e.Code != row.code || e.Outcome != row.outcome {
				t.Fatalf("error %v, not %s", err, row.code)
			}
			l.expect("W/f", row.file)
			if n := len(l.list()); (n == 1) != (row.outcome == record.Unknown) {
				t.Errorf("%d records", n)
			}
		})
	}
	l := newNatLab(t)
	l.bin = trash.NewScriptedBin(l.config(), filepath.Join(l.Dir, "none"))
	_, err := l.try(context.Background(), l.write("f", "x"))
	natError(t, err, record.CodeFailed, record.Failed, record.ReasonOperationFailed)
	l.expect("W/f", "x")
}

// TestOsascriptLimit: a program that does not end is ended.
func TestOsascriptLimit(t *testing.T) {
	begun := time.Now()
	_, err := trash.RunScript(program(t, "exec sleep 600"), 50*time.Millisecond, "/x")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(begun); d > time.Minute {
		t.Errorf("it took %v", d)
	}
}

// TestTrashScript runs the script itself, by another engine with objects that
// look like those of macOS: what is seen is that it is JavaScript, that it asks
// for exactly the path, and that its answers are understood. What macOS does is
// not seen.
func TestTrashScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIP: node is not installed")
	}
	stub := `const vm = require('vm');
const [script, path, mode] = process.argv.slice(2);
const asked = [];
const str = (s) => ({str: s});
const ctx = {
  ObjC: {import: () => {}, unwrap: (o) => o.str},
  Ref: () => [],
  $: {
    NSURL: {fileURLWithPathIsDirectory: (p, d) => ({p, d})},
    NSFileManager: {defaultManager: {trashItemAtURLResultingItemURLError: (url, landing, error) => {
      asked.push(url);
      if (mode === 'ok') { landing[0] = {path: str('/T/' + url.p.slice(1))}; return true; }
      error[0] = {domain: str('NSCocoaErrorDomain'), code: '513', localizedDescription: str('“no”\n' + url.p)};
      return false;
    }}},
  },
};
vm.createContext(ctx);
vm.runInContext(script, ctx);
ctx.path = path;
const answer = vm.runInContext('run([path])', ctx);
if (asked.length !== 1 || asked[0].p !== path || asked[0].d !== false) { throw new Error('asked ' + JSON.stringify(asked)); }
process.stdout.write(answer + '\n');
`
	file := filepath.Join(t.TempDir(), "stub.js")
	must(t, os.WriteFile(file, []byte(stub), 0o644))
	run := func(path, mode string) string {
		out, err := exec.Command(node, file, trash.TrashScript, path, mode).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", path, err, out)
		}
		return string(out)
	}
	path := "/" + strings.Join(nastyNames, " ")
	out := run(path, "ok")
	if strings.IndexFunc(out, func(r rune) bool { return r > 126 }) >= 0 {
		t.Errorf("the answer is not ASCII: %q", out)
	}
	landing, err := trash.ParseAnswer(out)
	if err != nil || landing != "/T/"+path[1:] {
		t.Errorf("landing %q, %v", landing, err)
	}
	_, err = trash.ParseAnswer(run(path, "no"))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "“no”") {
		t.Errorf("error %v", err)
	}
}

// A directory beneath which something is mounted stays.
func TestOsascriptMounts(t *testing.T) {
	l := newNatLab(t)
	mount := filepath.Join(l.W, "d", "image")
	l.bin = trash.NewScriptedBin(l.config(), program(t, `mv "$5" '`+l.T+`/moved'; echo`), "/", mount)
	l.write("d/image/f", "x")
	l.write("dx", "x")
	_, err := l.try(context.Background(), filepath.Join(l.W, "d"))
	e := natError(t, err, record.CodeRejected, record.Rejected, record.ReasonProtected)
	if !strings.Contains(e.Error(), mount) {
		t.Errorf("%v does not name the place", e)
	}
	l.expect("W/d/image/f", "x")
	_, err = l.try(context.Background(), filepath.Join(l.W, "dx"))
	natError(t, err, record.CodeUnknown, record.Unknown, record.ReasonOperationUnknown) // it was asked
}
