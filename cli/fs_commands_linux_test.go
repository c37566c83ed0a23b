package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// seed is the disk that every row begins with.
func (h *house) seed() {
	h.t.Helper()
	for _, d := range []string{h.ws, h.out, h.bin()} {
		if err := os.RemoveAll(d); err != nil {
			h.t.Fatal(err)
		}
		if err := os.MkdirAll(d, 0o700); err != nil {
			h.t.Fatal(err)
		}
	}
	h.file(h.ws, "a.txt", "one\ntwo\none\n", 0o644)
	h.file(h.ws, "crlf.txt", "\xef\xbb\xbfx\r\ny", 0o644)
	h.file(h.ws, "d/in.txt", "in\n", 0o644)
	h.file(h.ws, "data.bin", "\x00\xff\x01", 0o644)
	h.file(h.ws, "locked.txt", "locked\n", 0o444)
	h.file(h.out, "o.txt", "outside\n", 0o644)
	for name, to := range map[string]string{"link": "a.txt", "dangling": "nowhere", "away": "../out/o.txt"} {
		if err := os.Symlink(to, filepath.Join(h.ws, name)); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(h.ws, "empty"), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

// disk is what lies in the workspace, outside and in the trash: a line for each
// name.
func (h *house) disk() string {
	h.t.Helper()
	var b strings.Builder
	for _, top := range []string{h.ws, h.out, filepath.Join(h.bin(), "files")} {
		err := filepath.WalkDir(top, func(p string, e os.DirEntry, err error) error {
			if p == top {
				return nil // there may be no trash
			}
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(filepath.Dir(top), p)
			switch {
			case e.IsDir():
				fmt.Fprintf(&b, "%s/\n", rel)
			case e.Type() == os.ModeSymlink:
				to, err := os.Readlink(p)
				fmt.Fprintf(&b, "%s -> %s\n", rel, to)
				return err
			default:
				text, err := os.ReadFile(p)
				fmt.Fprintf(&b, "%s %q\n", rel, text)
				return err
			}
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return b.String()
}

// changed is what a row did to the disk: lines that are gone, then new ones.
func changed(before, after string) string {
	var out []string
	for _, l := range strings.Split(before, "\n") {
		if !strings.Contains("\n"+after, "\n"+l+"\n") && l != "" {
			out = append(out, "- "+l)
		}
	}
	for _, l := range strings.Split(after, "\n") {
		if !strings.Contains("\n"+before, "\n"+l+"\n") && l != "" {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

var (
	version    = regexp.MustCompile(`("version":"|version )1[A-Za-z0-9_-]+`)
	trashID    = regexp.MustCompile(`(  id |"id":")[^"\n]+`)
	trashDate  = regexp.MustCompile(`"deletionDate":"[^"]+"`)
	scratchDir = regexp.MustCompile(`/tmp/ws-[0-9a-f]+`)
)

// plain is output without what differs from run to run.
func (h *house) plain(s string) string {
	s = scratchDir.ReplaceAllString(version.ReplaceAllString(s, "${1}V"), "/tmp/ws")
	s = trashDate.ReplaceAllString(trashID.ReplaceAllString(s, "${1}ID"), `"deletionDate":"DATE"`)
	return strings.ReplaceAll(strings.ReplaceAll(s, filepath.Dir(h.ws), "P"), h.home, "HOME")
}

// patchOf joins operations to a patch.
func patchOf(ops ...string) string {
	return "*** Begin Patch\n" + strings.Join(ops, "") + "*** End Patch\n"
}

const (
	updateA   = "*** Update File: a.txt\n@@\n-two\n+TWO\n"
	addN      = "*** Add File: n.txt\n+n\n"
	addA      = "*** Add File: a.txt\n+mine\n"
	moveIn    = "*** Update File: d/in.txt\n*** Move to: moved.txt\n@@\n-in\n+out\n"
	deleteA   = "*** Delete File: a.txt\n"
	badUpdate = "*** Update File: d/in.txt\n@@\n-nosuch\n+x\n"
	updateOut = "*** Update File: ../out/o.txt\n@@\n-outside\n+x\n"
)

// fsRow is one command: what it prints and what the disk is afterwards.
type fsRow struct {
	args   string
	stdin  string
	code   int
	stdout string // whole, after plain
	stderr string // its lines begin so, each; after plain
	disk   string // of changed
}

var fsRows = []fsRow{
	{args: "read a.txt", stdout: "one\ntwo\none\n"},
	{args: "read crlf.txt", stdout: "x\r\ny"},
	{args: "read link", stdout: "one\ntwo\none\n"},
	{args: "read away", stdout: "outside\n"},
	{args: "read crlf.txt --bytes", stdout: "\xef\xbb\xbfx\r\ny"},
	{args: "read data.bin --bytes", stdout: "\x00\xff\x01"},
	{args: "read data.bin", code: 1, stderr: "wattle: FS_NOT_TEXT: \nwattle: hint: print it as it is with --bytes\n"},
	{args: "read data.bin --limit 1", code: 1, stderr: "wattle: FS_NOT_TEXT: \nwattle: hint: print it as it is with --bytes\n"},
	{args: "read a.txt --offset 2 --limit 1", stdout: "two\n", stderr: "wattle: (Lines 2 to 2 of 3. Continue at offset 3.)\n"},
	{args: "read a.txt --limit 9", stdout: "one\ntwo\none\n", stderr: "wattle: (End of file, 3 lines.)\n"},
	{args: "read a.txt --offset 4", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "read a.txt --limit 2001", code: 1, stderr: "wattle: FS_TOO_LARGE: \n"},
	{args: "read a.txt --offset 0", code: 2, stderr: "wattle: --offset 0: \nwattle: hint: see wattle fs read --help\n"},
	{args: "read a.txt --limit 0", code: 2, stderr: "wattle: --limit 0: \nwattle: hint: \n"},
	{args: "read a.txt --limit 1 --bytes", code: 2, stderr: "wattle: --bytes excludes \nwattle: hint: \n"},
	{args: "read nosuch", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "read nosuch --bytes", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "read dangling", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "read d", code: 1, stderr: "wattle: FS_NOT_REGULAR_FILE: \nwattle: hint: see what it is with wattle fs stat\n"},
	{args: "read d --bytes", code: 1, stderr: "wattle: FS_NOT_REGULAR_FILE: \nwattle: hint: \n"},
	{args: "read /dev/zero --bytes", code: 1, stderr: "wattle: FS_NOT_REGULAR_FILE: \nwattle: hint: \n"},
	{args: "read ../../home/.ssh/id_ed25519", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "read ../../home/.ssh/id_ed25519 --bytes", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},

	{args: "ls", stdout: "a.txt\naway\ncrlf.txt\nd/\ndangling\ndata.bin\nempty/\nlink\nlocked.txt\n"},
	{args: "ls d -l", stdout: "file                 3  in.txt\n"},
	{args: "ls empty"},
	{args: "ls a.txt", code: 1, stderr: "wattle: FS_NOT_DIRECTORY: \nwattle: hint: read it with wattle fs read\n"},
	{args: "ls nosuch", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "stat a.txt", stdout: "file  12 bytes  version V\n"},
	{args: "stat link --no-follow", stdout: "symlink  5 bytes  version V\n"},
	{args: "stat nosuch", code: 1, stderr: "wattle: stat nosuch: nothing is there\n"},
	{args: "resolve away", stdout: "P/out/o.txt\n"},
	{args: "resolve new/x", stdout: "P/ws/new/x\n"},
	{args: "resolve a.txt/x", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},

	{args: "edit a.txt --old two --new 2", stdout: "edited a.txt\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ ws/a.txt \"one\\n2\\none\\n\""},
	{args: "edit a.txt --old one --new 1", code: 1, stderr: "wattle: FS_AMBIGUOUS_EDIT: \nwattle: hint: give more of the text around it, or replace all with --all\n"},
	{args: "edit a.txt --old ONE --new 1", code: 1, stderr: "wattle: FS_EDIT_NOT_FOUND: \nwattle: hint: \n"},
	{args: "edit a.txt --old two --new 2 --if-version 1AwAAAA", code: 1, stderr: "wattle: FS_STALE_VERSION: \nwattle: hint: the file changed meanwhile; read it again and use the new version\n"},
	{args: "edit away --old outside --new x", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "write a.txt --if-absent", stdin: "x", code: 1, stderr: "wattle: FS_NOT_OBSERVED: \nwattle: hint: \n"},

	{args: "patch", stdin: patchOf(updateA, addN, moveIn), stdout: "done     update  a.txt\ndone     add     n.txt\ndone     move    d/in.txt -> moved.txt\n",
		disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n- ws/d/in.txt \"in\\n\"\n+ ws/a.txt \"one\\nTWO\\none\\n\"\n+ ws/moved.txt \"out\\n\"\n+ ws/n.txt \"n\\n\""},
	{args: "patch --dry-run", stdin: patchOf(updateA, addN), stdout: "planned  update  a.txt\nplanned  add     n.txt\n"},
	{args: "patch --compat codex", stdin: patchOf(updateA, addN, moveIn), stdout: "Success. Updated the following files:\nA n.txt\nM a.txt\nM moved.txt\n",
		disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n- ws/d/in.txt \"in\\n\"\n+ ws/a.txt \"one\\nTWO\\none\\n\"\n+ ws/moved.txt \"out\\n\"\n+ ws/n.txt \"n\\n\""},
	{args: "patch", stdin: patchOf(updateA, addN, badUpdate), code: 1,
		stderr: "wattle: planned  update  a.txt\nwattle: planned  add     n.txt\nwattle: failed   update  d/in.txt  (line 8 of the patch)\nwattle: nothing was changed\nwattle: FS_PATCH_MISMATCH: \nwattle: hint: read the file again\n"},
	{args: "patch --partial", stdin: patchOf(updateA, badUpdate, addN), code: 1, stdout: "done     update  a.txt\nfailed   update  d/in.txt  (line 6 of the patch)\nskipped  add     n.txt\n",
		stderr: "wattle: FS_PATCH_MISMATCH: \nwattle: hint: read the file again\n",
		disk:   "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ ws/a.txt \"one\\nTWO\\none\\n\""},
	{args: "patch --compat codex", stdin: patchOf(updateA, badUpdate, addN), code: 1, stdout: "Stopped at a failure. Updated the following files:\nM a.txt\n",
		stderr: "wattle: done     update  a.txt\nwattle: failed   update  d/in.txt \nwattle: skipped  add     n.txt\nwattle: FS_PATCH_MISMATCH: \nwattle: hint: \n",
		disk:   "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ ws/a.txt \"one\\nTWO\\none\\n\""},
	{args: "patch", stdin: patchOf(addA), code: 1, stderr: "wattle: failed   add     a.txt \nwattle: nothing was changed\nwattle: FS_ALREADY_EXISTS: \nwattle: hint: a file that is there is replaced with --overwrite\n"},
	{args: "patch --overwrite", stdin: patchOf(addA), stdout: "done     add     a.txt\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ ws/a.txt \"mine\\n\""},
	{args: "patch --permanent", stdin: patchOf(deleteA), stdout: "done     delete  a.txt\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\""},
	{args: "patch", stdin: patchOf(updateA, updateOut), code: 77, stderr: "wattle: skipped  update  a.txt\nwattle: failed   update  ../out/o.txt \nwattle: nothing was changed\nwattle: FS_SANDBOX_DENIED: \n"},
	{args: "patch --partial", stdin: patchOf(updateA, updateOut), code: 77, stderr: "wattle: skipped  update  a.txt\nwattle: failed   update  ../out/o.txt \nwattle: nothing was changed\nwattle: FS_SANDBOX_DENIED: \n"},
	{args: "patch", stdin: "junk\n", code: 1, stderr: "wattle: FS_PATCH_MISMATCH: \nwattle: hint: wattle fs patch --help shows the form of a patch\n"},
	{args: "patch", stdin: "\xff", code: 1, stderr: "wattle: FS_NOT_TEXT: \nwattle: hint: \n"},
	{args: "patch --compat git", stdin: patchOf(addN), code: 2, stderr: "wattle: --compat git: only codex is known\nwattle: hint: \n"},

	{args: "rm a.txt", stdout: "trashed  a.txt  id ID\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ files/a.txt \"one\\ntwo\\none\\n\""},
	{args: "rm d nosuch link", stdout: "trashed  d  id ID\nalready_absent  nosuch\ntrashed  link  id ID\n",
		disk: "- ws/d/\n- ws/d/in.txt \"in\\n\"\n- ws/link -> a.txt\n+ files/d/\n+ files/d/in.txt \"in\\n\"\n+ files/link -> a.txt"},
	{args: "rm ../out/o.txt d", code: 77, stdout: "trashed  d  id ID\n", stderr: "wattle: FS_SANDBOX_DENIED: \n",
		disk: "- ws/d/\n- ws/d/in.txt \"in\\n\"\n+ files/d/\n+ files/d/in.txt \"in\\n\""},
	{args: "rm .", code: 1, stderr: "wattle: TRASH_REJECTED: \n"},
	{args: "patch", stdin: patchOf(deleteA), stdout: "done     delete  a.txt  id ID\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ files/a.txt \"one\\ntwo\\none\\n\""},
	{args: "patch", stdin: patchOf(deleteA, badUpdate), code: 1, stderr: "wattle: planned  delete  a.txt\nwattle: failed   update  d/in.txt \nwattle: nothing was changed\nwattle: FS_PATCH_MISMATCH: \nwattle: hint: \n"},
	{args: "rm --permanent a.txt", stdout: "deleted  a.txt\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\""},
	{args: "rm --permanent link dangling away", stdout: "deleted  link\ndeleted  dangling\ndeleted  away\n", disk: "- ws/away -> ../out/o.txt\n- ws/dangling -> nowhere\n- ws/link -> a.txt"},
	{args: "rm --permanent nosuch", stdout: "already_absent  nosuch\n"},
	{args: "rm --permanent d", code: 1, stderr: "wattle: FS_IO_ERROR: \nwattle: hint: --recursive deletes it with all that is in it\n"},
	{args: "rm --permanent --recursive d", stdout: "deleted  d  2 entries\n", disk: "- ws/d/\n- ws/d/in.txt \"in\\n\""},
	{args: "rm --permanent empty", stdout: "deleted  empty\n", disk: "- ws/empty/"},
	{args: "rm --permanent d a.txt", code: 1, stdout: "deleted  a.txt\n", stderr: "wattle: FS_IO_ERROR: \nwattle: hint: \n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\""},
	{args: "rm --permanent ../out/o.txt", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "rm --permanent ../out/o.txt /etc/hosts", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \nwattle: FS_SANDBOX_DENIED: \n"},
	{args: "rm --permanent ../out/o.txt d", code: 1, stderr: "wattle: FS_SANDBOX_DENIED: \nwattle: FS_IO_ERROR: \nwattle: hint: \n"},
	{args: "rm --permanent .", code: 1, stderr: "wattle: TRASH_REJECTED: \n"},
	{args: "rm --recursive d", code: 2, stderr: "wattle: --recursive goes with --permanent: \nwattle: hint: \n"},
	{args: "rm --copy-across --permanent d", code: 2, stderr: "wattle: --copy-across is for the trash\nwattle: hint: \n"},
	{args: "rm", code: 2, stderr: "wattle: 0 arguments given, 1 needed\nwattle: hint: \n"},

	{args: "mv a.txt d/b.txt", stdout: "moved a.txt to P/ws/d/b.txt\n", disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ ws/d/b.txt \"one\\ntwo\\none\\n\""},
	{args: "mv d e", stdout: "moved d to P/ws/e\n", disk: "- ws/d/\n- ws/d/in.txt \"in\\n\"\n+ ws/e/\n+ ws/e/in.txt \"in\\n\""},
	{args: "mv a.txt d", code: 1, stderr: "wattle: FS_ALREADY_EXISTS: \nwattle: hint: --overwrite replaces a file; to put something into a directory\n"},
	{args: "mv a.txt d/in.txt", code: 1, stderr: "wattle: FS_ALREADY_EXISTS: \nwattle: hint: --overwrite \n"},
	{args: "mv a.txt d --overwrite", code: 1, stderr: "wattle: FS_NOT_REGULAR_FILE: \nwattle: hint: see what it is with wattle fs stat\n"},
	{args: "mv empty d --overwrite", code: 1, stderr: "wattle: FS_ALREADY_EXISTS: \nwattle: hint: only a file, or an empty directory, is replaced\n"},
	{args: "mkdir a.txt --parents", code: 1, stderr: "wattle: FS_ALREADY_EXISTS: \n"},
	{args: "mv a.txt d/in.txt --overwrite", stdout: "moved a.txt to P/ws/d/in.txt\n", stderr: "wattle: what was there is deleted\n",
		disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n- ws/d/in.txt \"in\\n\"\n+ ws/d/in.txt \"one\\ntwo\\none\\n\""},
	{args: "mv a.txt ../out/a.txt", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "mv nosuch x", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "cp a.txt d/b.txt", stdout: "copied a.txt to P/ws/d/b.txt  1 file, 12 bytes\n", disk: "+ ws/d/b.txt \"one\\ntwo\\none\\n\""},
	{args: "cp away mine", stdout: "copied away to P/ws/mine  1 file, 0 bytes\n", disk: "+ ws/mine -> ../out/o.txt"},
	{args: "cp d e", code: 1, stderr: "wattle: FS_NOT_REGULAR_FILE: \nwattle: hint: a directory is copied with --recursive\n"},
	{args: "cp d e --recursive", stdout: "copied d to P/ws/e  1 file, 3 bytes\n", disk: "+ ws/e/\n+ ws/e/in.txt \"in\\n\""},
	{args: "cp a.txt data.bin", code: 1, stderr: "wattle: FS_ALREADY_EXISTS: \nwattle: hint: --overwrite \n"},
	{args: "cp ../out/o.txt .git/hooks/pre-commit", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "mkdir n/m", code: 1, stderr: "wattle: FS_NOT_FOUND: \nwattle: hint: --parents \n"},
	{args: "mkdir d n", code: 1, stdout: "made P/ws/n\n", stderr: "wattle: FS_ALREADY_EXISTS: \nwattle: hint: --parents accepts \n", disk: "+ ws/n/"},
	{args: "mkdir d n/m --parents", stdout: "made P/ws/n\nmade P/ws/n/m\n", disk: "+ ws/n/\n+ ws/n/m/"},
	{args: "mkdir ../out/n", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "mv a.txt x --mode read-only", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
	{args: "mkdir ../out/n --mode full-access", stdout: "made P/out/n\n", disk: "+ out/n/"},
	{args: "watch nosuch/x/y", code: 1, stderr: "wattle: FS_NOT_FOUND: \n"},
	{args: "watch ../../home/.ssh/x", code: 77, stderr: "wattle: FS_SANDBOX_DENIED: \n"},
}

// startsWith compares lines: each begins as wanted, and there are no others.
func startsWith(got, want string) bool {
	g, w := strings.SplitAfter(got, "\n"), strings.Split(strings.TrimSuffix(want, "\n"), "\n")
	if want == "" {
		return got == ""
	}
	if len(g) != len(w)+1 {
		return false
	}
	for i := range w {
		if !strings.HasPrefix(g[i], w[i]) {
			return false
		}
	}
	return true
}

// Every command, in process and through a daemon: what it prints, how it ends,
// and what the disk is afterwards. The whole output of both ways is the same,
// in text and as JSON.
func TestFileCommands(t *testing.T) {
	h := newHouse(t)
	h.file(h.home, ".ssh/id_ed25519", "secret\n", 0o600)
	text, asJSON := make([]result, len(fsRows)), make([]result, len(fsRows))
	run := func(t *testing.T, row *fsRow, more ...string) (r result, disk string) {
		h.t = t
		h.seed()
		before := h.disk()
		args := append([]string{"fs"}, strings.Fields(row.args)...)
		r = h.with(row.stdin, append(args, more...)...)
		r.stdout, r.stderr = h.plain(r.stdout), h.plain(r.stderr)
		return r, changed(before, h.disk())
	}
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.t = t
			h.serve()
		}
		for i := range fsRows {
			row := &fsRows[i]
			t.Run(way+"/"+row.args, func(t *testing.T) {
				r, disk := run(t, row)
				if r.code != row.code || r.stdout != row.stdout || !startsWith(r.stderr, row.stderr) {
					t.Errorf("status %d, want %d\nstdout: %q\nwant:   %q\nstderr:\n%s\nwant:\n%s", r.code, row.code, r.stdout, row.stdout, r.stderr, row.stderr)
				}
				if disk != row.disk {
					t.Errorf("disk:\n%s\nwant:\n%s", disk, row.disk)
				}
				j, disk := run(t, row, "--json")
				if j.code != row.code || j.stderr != "" || disk != row.disk {
					t.Errorf("as JSON: status %d, stderr %q, disk:\n%s", j.code, j.stderr, disk)
				}
				if row.code != 2 && strings.TrimSpace(j.stdout) != "null" {
					h.objects(j.stdout)
				}
				switch way {
				case "in process":
					text[i], asJSON[i] = r, j
				case "daemon":
					if r != text[i] {
						t.Errorf("in process: %+v\nby the daemon: %+v", text[i], r)
					}
					if j != asJSON[i] {
						t.Errorf("in process: %+v\nby the daemon: %+v", asJSON[i], j)
					}
				}
			})
		}
	}
	h.t = t
	if got := h.read(filepath.Join(h.home, ".ssh/id_ed25519")); got != "secret\n" {
		t.Errorf("%q", got)
	}
	if n := h.object(h.do("status", "--json").stdout)["sessions"]; n != 0.0 {
		t.Errorf("%v sessions are left", n)
	}
	h.noScratch()
}

// What changes nothing gives the same JSON for the same disk, versions too.
func TestSameDiskSameJSON(t *testing.T) {
	h := newHouse(t)
	h.seed()
	h.file(h.ws, "long.txt", strings.Repeat("a line of this file\n", 5000), 0o644)
	commands := []string{
		"stat a.txt", "stat link", "stat link --no-follow", "stat d", "ls", "ls d", "resolve away", "resolve new/x",
		"read a.txt", "read crlf.txt", "read long.txt", "read long.txt --offset 7 --limit 30", "read long.txt --offset 1",
		"read data.bin --bytes", "read data.bin", "read nosuch", "ls a.txt", "patch --dry-run", "rm nosuch", "mkdir d --parents",
		"edit a.txt --old one --new 1", "mv a.txt ../out/x", "rm .",
	}
	var before []result
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.serve()
		}
		for i, c := range commands {
			r := h.with(patchOf(updateA, addN, moveIn), append(append([]string{"fs"}, strings.Fields(c)...), "--json")...)
			r.stdout = scratchDir.ReplaceAllString(r.stdout, "/tmp/ws") // another session's
			if way == "in process" {
				before = append(before, r)
				if r.stdout == "" {
					t.Errorf("%s: nothing on stdout", c)
				}
			} else if r != before[i] {
				t.Errorf("%s\nin process: %+v\nby the daemon: %+v", c, before[i], r)
			}
		}
	}
}

// Files and directories of any size: streamed, by ranges, by pages.
func TestLargeFilesAndDirectories(t *testing.T) {
	h := newHouse(t)
	text := bytes.Repeat([]byte("ein längerer Text, größer als jede Nachricht\n"), 18<<20/45)
	bin := bytes.Repeat([]byte("\x00\x01\xff\xfe\x7f"), 13<<20/5)
	h.file(h.ws, "big.txt", string(text), 0o644)
	h.file(h.ws, "big.bin", string(bin), 0o644)
	var names strings.Builder
	for i := range 4001 { // three pages
		name := fmt.Sprintf("%05d", i)
		h.file(h.ws, "many/"+name, "", 0o644)
		names.WriteString(name + "\n")
	}
	for i := range 2000 { // one page, exactly full
		h.file(h.ws, fmt.Sprintf("full/%05d", i), "", 0o644)
	}
	for _, way := range []string{"in process", "daemon"} {
		if way == "daemon" {
			h.serve()
		}
		if r := h.want(h.do("fs", "read", "big.txt"), 0); r.stdout != string(text) {
			t.Errorf("%s: %d bytes of text, want %d", way, len(r.stdout), len(text))
		}
		if r := h.want(h.do("fs", "read", "big.bin", "--bytes"), 0); r.stdout != string(bin) {
			t.Errorf("%s: %d bytes, want %d", way, len(r.stdout), len(bin))
		}
		for _, args := range [][]string{{"big.txt"}, {"big.bin", "--bytes"}} {
			r := h.want(h.do(append([]string{"fs", "read", "--json"}, args...)...), 1)
			if h.object(r.stdout)["data"].(map[string]any)["code"] != "FS_TOO_LARGE" {
				t.Error(r.stdout)
			}
		}
		if r := h.want(h.do("fs", "ls", "many"), 0); r.stdout != names.String() {
			t.Errorf("%s: %d lines", way, strings.Count(r.stdout, "\n"))
		}
		if l := h.objects(h.want(h.do("fs", "ls", "full", "--json"), 0).stdout); len(l) != 2000 || l[1999]["name"] != "01999" {
			t.Errorf("%s: %d entries", way, len(l))
		}
	}
}

// Names that are no UTF-8 do not travel; what is done without a daemon is done.
func TestNamesThatAreNoText(t *testing.T) {
	h := newHouse(t)
	bad := h.file(h.ws, "bad\xff", "x", 0o644)
	if r := h.want(h.do("fs", "ls"), 0); r.stdout != "bad\\xff\n" {
		t.Errorf("%q", r.stdout)
	}
	h.serve()
	r := h.want(h.do("fs", "rm", "--permanent", "bad\xff"), 1)
	if !startsWith(r.stderr, "wattle: FS_NOT_TEXT: \nwattle: hint: it can be used while no daemon runs\n") || h.read(bad) != "x" {
		t.Error(r.stderr)
	}
}

// When the result cannot be written, nothing more is deleted.
func TestRemoveStopsWhenItCannotTell(t *testing.T) {
	h := newHouse(t)
	h.seed()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIP: no /dev/full")
	}
	defer full.Close()
	c := h.command("fs", "rm", "--permanent", "a.txt", "data.bin")
	c.Stdout = full
	if r := h.want(h.finish(c), 1); !startsWith(r.stderr, "wattle: write result: \n") {
		t.Error(r.stderr)
	}
	h.absent(filepath.Join(h.ws, "a.txt"))
	h.read(filepath.Join(h.ws, "data.bin"))
}

// A watch tells changes by others, line by line, and ends by a signal with its
// status or with what is watched.
func TestWatchCommand(t *testing.T) {
	for _, way := range []string{"in process", "daemon"} {
		t.Run(way, func(t *testing.T) {
			h := newHouse(t)
			h.seed()
			if way == "daemon" {
				h.serve()
			}
			s := h.start("fs", "watch", "d", "--json")
			begun := h.object(s.line())
			keys(t, begun, "watchId")
			h.file(h.ws, "d/x\ny", "1", 0o644)
			e := h.object(s.line())
			keys(t, e, "epoch", "seq", "time", "type", "sessionId", "data")
			data := e["data"].(map[string]any)
			keys(t, data, "watchId", "path", "name")
			if e["time"].(string) < "2020" || e["type"] != "watch.changed" || data["watchId"] != begun["watchId"] || data["name"] != "x\ny" || data["path"] != filepath.Join(h.ws, "d", "x\ny") {
				t.Errorf("%v", e)
			}
			s.signal(syscall.SIGINT)
			if code := s.end(); code != 130 || s.stderr.String() != "" {
				t.Errorf("status %d\n%s", code, s.stderr.String())
			}

			s = h.start("fs", "watch", "later/new.txt", "--json")
			if code := s.end(); code != 1 {
				t.Errorf("status %d for a missing directory", code)
			}
			// Active when it answers: the file is made right then.
			s = h.start("fs", "watch", "d/later", "--json")
			s.line()
			h.file(h.ws, "d/later", "", 0o644)
			if e := h.object(s.line()); e["data"].(map[string]any)["path"] != filepath.Join(h.ws, "d", "later") {
				t.Errorf("%v", e)
			}
			s.signal(syscall.SIGTERM)
			if code := s.end(); code != 143 {
				t.Errorf("status %d", code)
			}

			// Text, and the end of what is watched.
			text := h.command("fs", "watch", "empty")
			pr, pw, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer pr.Close()
			text.Stdout = pw
			said := make(chan string, 4096)
			s = &started{h: h, lines: said}
			text.Stderr = pw
			if err := text.Start(); err != nil {
				t.Fatal(err)
			}
			pw.Close()
			s.cmd = text
			go feed(pr, said)
			t.Cleanup(func() { text.Process.Kill(); text.Process.Wait() })
			if l := s.line(); l != "wattle: watching empty" {
				t.Errorf("%q", l)
			}
			h.file(h.ws, "empty/\x1b[2J", "", 0o644)
			if l := s.line(); l != "changed  "+filepath.Join(h.ws, "empty", `\x1b[2J`) {
				t.Errorf("%q", l)
			}
			if err := os.RemoveAll(filepath.Join(h.ws, "empty")); err != nil {
				t.Fatal(err)
			}
			last := ""
			for l := range said {
				last = l
			}
			if code := waited(text); code != 1 || !strings.HasPrefix(last, "wattle: FS_NOT_FOUND: ") {
				t.Errorf("status %d, last line %q", code, last)
			}
			// What the kernel makes up cannot be watched, and the watch says so.
			s = h.start("fs", "watch", "/proc/sys", "--json")
			if blind := h.object(s.line())["blind"]; !strings.HasPrefix(blind.(string), "proc: ") {
				t.Errorf("%v", blind)
			}
			s.signal(syscall.SIGHUP)
			if code := s.end(); code != 129 {
				t.Errorf("status %d", code)
			}
			if way == "daemon" {
				h.eventually("the sessions to end", func() bool { return h.object(h.do("status", "--json").stdout)["sessions"] == 0.0 })
			}
			h.noScratch()
		})
	}
}

// The results have the names of the protocol, one object a path.
func TestJSONNamesOfFiles(t *testing.T) {
	h := newHouse(t)
	h.seed()
	for _, c := range []struct{ args, names string }{
		{"resolve a.txt", "targetKey displayPath"},
		{"read data.bin --bytes", "data version"},
		{"cp a.txt b.txt", "path type files bytes"},
		{"mv b.txt c.txt", "path type"},
		{"mkdir n/m --parents", "path made"},
		{"patch", "operations summary"},
		{"patch --dry-run --compat codex", "operations dryRun summary"},
		{"rm c.txt", "outcome before trashed type"},
		{"rm c.txt", "outcome before"},
		{"rm n --permanent --recursive", "outcome before type entries"},
	} {
		r := h.want(h.with(patchOf(addN), append(append([]string{"fs"}, strings.Fields(c.args)...), "--json")...), 0)
		if l := h.objects(r.stdout); len(l) != 1 {
			t.Errorf("%s: %d objects", c.args, len(l))
		} else {
			keys(t, l[0], strings.Fields(c.names)...)
		}
	}
	r := h.want(h.do("fs", "rm", "nosuch", "../out/o.txt", "a.txt", "--json"), 77)
	l := h.objects(r.stdout)
	if len(l) != 3 || l[0]["outcome"] != "already_absent" || l[1]["code"] != -32010.0 || l[2]["outcome"] != "trashed" {
		t.Errorf("%v", l)
	}
	keys(t, l[2]["trashed"].(map[string]any), "id", "originalPath", "deletionDate", "trashDir", "name", "size", "type", "state")
	r = h.want(h.with(patchOf(updateA, badUpdate), "fs", "patch", "--json"), 1)
	keys(t, h.object(r.stdout)["data"].(map[string]any), "code", "op", "path", "report")
	if r := h.want(h.do("__complete", "fs", "patch", "--compat", ""), 0); !strings.HasPrefix(r.stdout, "codex\n") {
		t.Errorf("%q", r.stdout)
	}
	if r := h.want(h.do("__complete", "fs", "rm", ""), 0); !strings.HasPrefix(r.stdout, ":0\n") {
		t.Errorf("%q: file names are not completed", r.stdout)
	}
}

// Relative paths are taken from where the caller is, all of them.
func TestRelativeToTheCaller(t *testing.T) {
	h := newHouse(t)
	for _, way := range []string{"in process", "daemon"} {
		h.seed()
		if way == "daemon" {
			h.serve()
		}
		before := h.disk()
		for _, c := range []struct{ args, stdin string }{
			{"patch", patchOf("*** Update File: in.txt\n@@\n-in\n+out\n", "*** Add File: ../up.txt\n+up\n")},
			{"mv in.txt moved.txt", ""}, {"cp moved.txt copy.txt", ""}, {"mkdir new", ""}, {"rm --permanent moved.txt ../a.txt", ""},
		} {
			cmd := h.command(append([]string{"fs"}, append(strings.Fields(c.args), "--workspace", h.ws)...)...)
			cmd.Dir, cmd.Stdin = filepath.Join(h.ws, "d"), strings.NewReader(c.stdin)
			h.want(h.finish(cmd), 0)
		}
		want := "- ws/a.txt \"one\\ntwo\\none\\n\"\n- ws/d/in.txt \"in\\n\"\n+ ws/d/copy.txt \"out\\n\"\n+ ws/d/new/\n+ ws/up.txt \"up\\n\""
		if got := changed(before, h.disk()); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", way, got, want)
		}
	}
}
