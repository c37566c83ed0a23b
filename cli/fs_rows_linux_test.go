package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
	{args: "write a.txt --policy keep", stdin: "new", stdout: "updated a.txt\n", stderr: "wattle: what was there is in the trash  id \n",
		disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n+ ws/a.txt \"new\"\n+ files/a.txt \"one\\ntwo\\none\\n\""},
	{args: "mv a.txt d/in.txt --overwrite --policy keep", stdout: "moved a.txt to P/ws/d/in.txt\n", stderr: "wattle: what was there is in the trash  id \n",
		disk: "- ws/a.txt \"one\\ntwo\\none\\n\"\n- ws/d/in.txt \"in\\n\"\n+ ws/d/in.txt \"one\\ntwo\\none\\n\"\n+ files/in.txt \"in\\n\""},
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
