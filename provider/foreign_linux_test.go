package provider_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/provider"
)

// Somebody else acts at a named point inside an operation (E7, and rows of
// fs-contract section 11).
func TestForeignChangeDuringReplacement(t *testing.T) {
	const text = "one two\n"
	swap := func(p *place, kind string) {
		f := p.W + "/f"
		switch kind {
		case "other content":
			must(t, os.WriteFile(f, []byte("foreign two and more\n"), 0o644))
		case "same size, restored mtime":
			fi, err := os.Stat(f)
			must(t, err)
			must(t, os.WriteFile(f, []byte("ONE two\n"), 0o644))
			must(t, os.Chtimes(f, fi.ModTime(), fi.ModTime()))
		case "renamed over":
			must(t, os.WriteFile(p.O+"/n", []byte("renamed two\n"), 0o644))
			must(t, os.Rename(p.O+"/n", f))
		case "renamed over, equal bytes":
			must(t, os.WriteFile(p.O+"/n", []byte(text), 0o644))
			must(t, os.Rename(p.O+"/n", f))
		case "removed":
			must(t, os.Remove(f))
		case "directory":
			must(t, os.Remove(f))
			must(t, os.Mkdir(f, 0o755))
		case "link out":
			must(t, os.Remove(f))
			must(t, os.Symlink(p.O+"/victim", f))
		case "dangling link":
			must(t, os.Remove(f))
			must(t, os.Symlink("none", f))
		case "FIFO":
			must(t, os.Remove(f))
			must(t, syscall.Mkfifo(f, 0o644))
		case "chmod":
			must(t, os.Chmod(f, 0o751))
		default:
			t.Fatal(kind)
		}
	}
	// What each kind leads to for the operations: a code and the file's
	// content afterwards; "" stands for "no regular file there".
	type result struct {
		code provider.Code
		file string
	}
	const stale, denied, notReg = provider.CodeStaleVersion, provider.CodeSandboxDenied, provider.CodeNotRegularFile
	kinds := []struct {
		name                            string
		guarded, plain, edit, plainEdit result
	}{
		{"other content", result{stale, "foreign two and more\n"}, result{"", "mine"}, result{stale, "foreign two and more\n"}, result{"", "foreign 2 and more\n"}},
		{"same size, restored mtime", result{stale, "ONE two\n"}, result{"", "mine"}, result{stale, "ONE two\n"}, result{"", "ONE 2\n"}},
		{"renamed over", result{stale, "renamed two\n"}, result{"", "mine"}, result{stale, "renamed two\n"}, result{"", "renamed 2\n"}},
		{"renamed over, equal bytes", result{"", "mine"}, result{"", "mine"}, result{"", "one 2\n"}, result{"", "one 2\n"}},
		{"removed", result{stale, ""}, result{"", "mine"}, result{stale, ""}, result{stale, ""}},
		{"directory", result{notReg, ""}, result{notReg, ""}, result{notReg, ""}, result{notReg, ""}},
		{"link out", result{denied, ""}, result{denied, ""}, result{denied, ""}, result{denied, ""}},
		{"dangling link", result{stale, ""}, result{notReg, ""}, result{stale, ""}, result{stale, ""}},
		{"FIFO", result{notReg, ""}, result{notReg, ""}, result{notReg, ""}, result{notReg, ""}},
		{"chmod", result{"", "mine"}, result{"", "mine"}, result{"", "one 2\n"}, result{"", "one 2\n"}},
	}
	for _, point := range []string{"judged", "staged", "checked"} {
		for _, k := range kinds {
			for what, want := range map[string]result{"guarded": k.guarded, "plain": k.plain, "edit": k.edit, "plainEdit": k.plainEdit} {
				t.Run(point+"/"+k.name+"/"+what, func(t *testing.T) {
					p := newPlace(t, "", provider.Config{})
					p.put("f", text)
					must(t, os.WriteFile(p.O+"/victim", []byte("victim"), 0o644))
					// As the observation policy does it: the version of a stat
					// before the read.
					seen, err := p.l.Stat(t.Context(), p.f, p.target("f"))
					must(t, err)
					_, err = p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
					must(t, err)
					acted := false
					p.l.SetHook(func(at string) {
						if at == point && !acted {
							acted = true
							swap(p, k.name)
						}
					})
					var before *string
					switch what {
					case "guarded":
						_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(seen.Version))
					case "plain":
						var o provider.WriteOutcome
						o, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", provider.WriteOptions{})
						before = o.Before
					default:
						o := provider.EditOptions{}
						if what == "edit" {
							o.Expected = &provider.VersionGuard{Version: seen.Version}
						}
						_, err = p.l.EditText(t.Context(), p.f, p.target("f"), provider.EditRequest{OldString: "two", NewString: "2"}, o)
					}
					code(t, err, want.code)
					if !acted {
						t.Fatal("the point was never reached")
					}
					fi, lerr := os.Lstat(p.W + "/f")
					regular := lerr == nil && fi.Mode().IsRegular()
					if want.file == "" {
						if regular {
							t.Errorf("a file is there: %q", p.get("f"))
						}
					} else if got := p.get("f"); got != want.file {
						t.Errorf("file %q, want %q", got, want.file)
					}
					if k.name == "chmod" && fi.Mode() != 0o751 {
						t.Errorf("mode %v", fi.Mode())
					}
					if what == "plain" && k.name == "other content" && (before == nil || *before != "foreign two and more\n") {
						t.Errorf("before is not what was replaced: %v", before)
					}
					if b, _ := os.ReadFile(p.O + "/victim"); string(b) != "victim" {
						t.Errorf("outside: %q", b)
					}
					if lerr == nil {
						p.only("f")
					} else {
						p.only()
					}
				})
			}
		}
	}
}

// What others do after the exchange: their newest content must stay.
func TestForeignChangeAfterExchange(t *testing.T) {
	over := func(p *place, content string) {
		must(t, os.WriteFile(p.O+"/n", []byte(content), 0o644))
		must(t, os.Rename(p.O+"/n", p.W+"/f"))
	}
	tests := []struct {
		name                          string
		checked, exchanged, restoring func(p *place)
		code                          provider.Code
		file                          string
	}{
		{name: "replaced after a good exchange", exchanged: func(p *place) { over(p, "newest") }, file: "newest"},
		{name: "removed after a good exchange", exchanged: func(p *place) { must(t, os.Remove(p.W+"/f")) }},
		{name: "replaced before and after", checked: func(p *place) { over(p, "first") }, exchanged: func(p *place) { over(p, "newest") },
			code: provider.CodeStaleVersion, file: "newest"},
		{name: "replaced before, and while it is put back", checked: func(p *place) { over(p, "first") }, restoring: func(p *place) { over(p, "newest") },
			code: provider.CodeStaleVersion, file: "newest"},
		{name: "replaced before, removed after", checked: func(p *place) { over(p, "first") }, exchanged: func(p *place) { must(t, os.Remove(p.W+"/f")) },
			code: provider.CodeStaleVersion},
		{name: "replaced before, removed while it is put back", checked: func(p *place) { over(p, "first") }, restoring: func(p *place) { must(t, os.Remove(p.W+"/f")) },
			code: provider.CodeStaleVersion},
		{name: "replaced before, a directory after", checked: func(p *place) { over(p, "first") },
			exchanged: func(p *place) { must(t, os.Remove(p.W+"/f")); must(t, os.Mkdir(p.W+"/f", 0o755)) }, code: provider.CodeNotRegularFile},
		{name: "replaced before, a directory while it is put back", checked: func(p *place) { over(p, "first") },
			restoring: func(p *place) { must(t, os.Remove(p.W+"/f")); must(t, os.Mkdir(p.W+"/f", 0o755)) }, code: provider.CodeNotRegularFile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.put("f", "start")
			read, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
			must(t, err)
			once := map[string]bool{}
			p.l.SetHook(func(at string) {
				do := map[string]func(*place){"checked": tt.checked, "exchanged": tt.exchanged, "restoring": tt.restoring}[at]
				if do != nil && !once[at] {
					once[at] = true
					do(p)
				}
			})
			_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(read.Version))
			code(t, err, tt.code)
			fi, lerr := os.Lstat(p.W + "/f")
			if tt.file != "" && p.get("f") != tt.file {
				t.Errorf("file %q, want %q", p.get("f"), tt.file)
			}
			if tt.file == "" && lerr == nil && fi.Mode().IsRegular() {
				t.Errorf("a file is there: %q", p.get("f"))
			}
			if lerr == nil {
				p.only("f")
			} else {
				p.only()
			}
		})
	}
	// A refused content that is moved away, or exchanged, while it lies there:
	// the file that it took the place of was replaced by nobody and must stay.
	for _, point := range []string{"exchanged", "restoring"} {
		t.Run("moved away, "+point, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.put("f", "start")
			v := p.version("f")
			p.l.SetHook(func(at string) {
				switch at {
				case "checked":
					over(p, "theirs")
				case point:
					must(t, os.Rename(p.W+"/f", p.O+"/moved"))
				}
			})
			_, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
			code(t, err, provider.CodeStaleVersion)
			if p.get("f") != "theirs" {
				t.Errorf("file %q", p.get("f"))
			}
			p.only("f")
		})
		t.Run("exchanged with another, "+point, func(t *testing.T) {
			p := newPlace(t, "", provider.Config{})
			p.put("f", "start")
			v := p.version("f")
			p.put("g", "another")
			p.l.SetHook(func(at string) {
				switch at {
				case "checked":
					over(p, "theirs")
				case point:
					must(t, unix.Renameat2(unix.AT_FDCWD, p.W+"/f", unix.AT_FDCWD, p.W+"/g", unix.RENAME_EXCHANGE))
				}
			})
			_, err := p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(v))
			code(t, err, provider.CodeIOError)
			if p.get("f") != "another" {
				t.Errorf("file %q", p.get("f"))
			}
			found := false
			es, rerr := os.ReadDir(p.W)
			must(t, rerr)
			for _, e := range es {
				if strings.Contains(err.Error(), "kept as "+e.Name()) && p.get(e.Name()) == "theirs" {
					found = true
				}
			}
			if !found {
				t.Errorf("their file is gone: %v, %v", es, err)
			}
		})
	}
	t.Run("replaced, content too large to hash", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{DiffBasisMaxBytes: 1})
		p.put("f", "start")
		i, err := p.l.Stat(t.Context(), p.f, p.target("f"))
		must(t, err)
		p.l.SetHook(func(at string) {
			if at == "checked" {
				over(p, "other")
			}
		})
		_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine", ifVersion(i.Version))
		code(t, err, provider.CodeStaleVersion)
		if p.get("f") != "other" {
			t.Errorf("file %q", p.get("f"))
		}
		p.only("f")
	})
	t.Run("written through an old descriptor before the look", func(t *testing.T) {
		p := newPlace(t, "", provider.Config{})
		f, err := os.OpenFile(p.put("f", "start"), os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		fi, err := f.Stat()
		must(t, err)
		read, err := p.l.ReadText(t.Context(), p.f, p.target("f"), provider.ReadOptions{})
		must(t, err)
		p.l.SetHook(func(at string) {
			if at == "exchanged" {
				_, err := f.WriteAt([]byte("START"), 0)
				must(t, err)
				tv := syscall.NsecToTimeval(fi.ModTime().UnixNano())
				must(t, syscall.Futimes(int(f.Fd()), []syscall.Timeval{tv, tv}))
			}
		})
		_, err = p.l.WriteText(t.Context(), p.f, p.target("f"), "mine!", ifVersion(read.Version))
		code(t, err, provider.CodeStaleVersion)
		if p.get("f") != "START" {
			t.Errorf("file %q", p.get("f"))
		}
		p.only("f")
	})
}
