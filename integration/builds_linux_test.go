package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real Go project is put under git, built, vetted and tested inside the
// fence, with a fresh home and no network, and without a denial in the
// workspace. Its source is a module that this program is built with.
func TestGoProjectBuilds(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gorilla/websocket").Output()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	if err := os.CopyFS(p.ws, os.DirFS(strings.TrimSpace(string(out)))); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(p.ws, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	}); err != nil {
		t.Fatal(err)
	}
	// The user's module cache is readable and has what is needed.
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "GOMODCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=-mod=mod -buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local")
	for _, step := range []string{
		"git init -q . && git add -A && git -c user.name=n -c user.email=a@b commit -qm one && test -z \"$(git status --short)\"",
		"go build ./...", "go vet .", "go test -run 'TestJoin|TestParse|TestCompression' .",
		"git switch -q -c topic && git config user.name bob && git remote add origin ../elsewhere && git branch -m renamed",
	} {
		r := p.run("", wattle, "run", "--network", "off", "--report", filepath.Join(p.dir, "report"), "--", "sh", "-ec", step)
		if r.code != 0 {
			t.Fatalf("%s: %+v", step, r)
		}
		report, err := os.ReadFile(filepath.Join(p.dir, "report"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(report), `"type":"denied","code":"FS_SANDBOX_DENIED","path":"`+p.ws) {
			t.Errorf("%s was denied something in the workspace:\n%s", step, r.stderr)
		}
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := e.Name(); n != "ws" && n != "home" && n != "report" {
			t.Errorf("%s was left beside the workspace", n)
		}
	}
}

// A C project with make, sub-makes in parallel and an installed result.
func TestCProjectBuilds(t *testing.T) {
	p := newPlace(t)
	for name, text := range map[string]string{
		"Makefile":     "all: prog\nprog: main.o lib/lib.a\n\t$(CC) -o $@ main.o lib/lib.a\nlib/lib.a: FORCE\n\t$(MAKE) -C lib lib.a\nFORCE:\ninstall: prog\n\tinstall -D -m 0755 prog out/bin/prog\n%.o: %.c\n\t$(CC) -O1 -c -o $@ $<\n",
		"main.c":       "int answer(void);\nint main(void) { return answer() - 42; }\n",
		"lib/Makefile": "lib.a: a.o b.o\n\t$(AR) rcs $@ $^\n",
		"lib/a.c":      "int b(void);\nint answer(void) { return b() + 2; }\n",
		"lib/b.c":      "int b(void) { return 40; }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := p.run("", wattle, "run", "--", "sh", "-ec", "make -s -j2 && ./prog && make -s install && ./out/bin/prog && tar czf src.tgz main.c lib && mkdir x && tar xzf src.tgz -C x && cp -a lib copy && rm -rf x copy")
	if r.code != 0 || strings.Contains(r.stderr, "wattle: denied") {
		t.Errorf("%+v", r)
	}
}
