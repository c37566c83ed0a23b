package sandbox_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// variant is one way to do something, timed beside the others.
type variant struct {
	name string
	do   func() error
	took []time.Duration
}

// interleave runs all variants in random order in every round and reports the
// median of each and its ratio to the first: what the machine does meanwhile
// hits all of them.
func interleave(b *testing.B, vs []*variant) {
	b.Helper()
	for _, v := range vs { // what is made once: caches, threads
		for range 3 {
			if err := v.do(); err != nil {
				b.Fatal(v.name, err)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		for _, i := range r.Perm(len(vs)) {
			begin := time.Now()
			if err := vs[i].do(); err != nil {
				b.Fatal(vs[i].name, err)
			}
			vs[i].took = append(vs[i].took, time.Since(begin))
		}
	}
	var first float64
	for i, v := range vs {
		slices.Sort(v.took)
		p50 := float64(v.took[len(v.took)/2].Nanoseconds()) / 1000
		if i == 0 {
			first = p50
		}
		b.ReportMetric(p50, v.name+"-µs")
		if i > 0 {
			b.ReportMetric(p50/first, v.name+"-ratio")
		}
	}
}

// hiddenSet makes a home with as many names and hidden paths as the default
// policy meets in a real one.
func hiddenSet(l *lab, p *fence.Policy) {
	for _, n := range strings.Fields(".ssh .gnupg .pki .aws .azure .kube .netrc .npmrc .docker .config .cache .local .mozilla .cargo .bashrc .profile dev Documents Downloads Music go bin a b c d e f") {
		_ = os.MkdirAll(filepath.Join(l.H, n, "x"), 0o755)
	}
	for _, n := range strings.Fields(".ssh .gnupg .pki .local/share/keyrings .password-store .config/op .keepass* .aws .azure .config/gcloud .oci .kube .terraform.d .vault-token .netrc .git-credentials .docker/config.json .npmrc .pypirc .cargo/credentials .cargo/credentials.toml .gem/credentials .config/gh/hosts.yml .m2/settings.xml .gradle/gradle.properties .credentials .secrets .env .mozilla .thunderbird .cache/mozilla .config/google-chrome* .config/chromium* .config/Signal .config/Slack") {
		p.Hidden = append(p.Hidden, fence.Entry{Path: filepath.Join(l.H, n), Source: "preset:secrets"})
	}
	p.Own = []string{filepath.Join(l.H, ".config/wattle"), filepath.Join(l.H, ".local/state/wattle")}
}

// BenchmarkSpawn is spawn to exit of /bin/true: plain os/exec; under Landlock
// alone, with nothing hidden and with the default hidden set; with the
// supervisor too; and whole, with streams, as a client has it.
func BenchmarkSpawn(b *testing.B) {
	l := newLab(b)
	ctx := context.Background()
	plain := l.fence(fence.WorkspaceWrite)
	hidden := l.fence(fence.WorkspaceWrite, func(p *fence.Policy) { hiddenSet(l, p) })
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	spec := func(f *fence.Fence, inherit bool) sandbox.Spec {
		s := sandbox.Spec{Argv: []string{"/bin/true"}, Dir: l.W, Caller: l.callerEnv(), TempDir: l.T, Fence: f}
		if inherit {
			s.Inherit = &[3]*os.File{null, null, null}
		}
		return s
	}
	start := func(f *fence.Fence, inherit bool) func() error {
		return func() error {
			p, err := l.r.Start(ctx, spec(f, inherit))
			if err != nil {
				return err
			}
			<-p.Over()
			return nil
		}
	}
	alone := func(f *fence.Fence) func() error {
		return func() error { return l.r.RunUnsupervised(f, spec(f, true)) }
	}
	interleave(b, []*variant{
		{name: "plain", do: func() error { c := exec.Command("/bin/true"); c.Dir = l.W; return c.Run() }},
		{name: "landlock", do: alone(plain)},
		{name: "hidden", do: alone(hidden)},
		{name: "supervised", do: start(plain, true)},
		{name: "supervised-hidden", do: start(hidden, true)},
		{name: "streams", do: start(plain, false)},
	})
}

// BenchmarkOpenForWriting is what one such call costs a command: without a
// fence, under Landlock alone, and with the supervisor; 2,000 of each in one
// program.
func BenchmarkOpenForWriting(b *testing.B) {
	l := newLab(b)
	l.repository(l.W)
	f := l.fence(fence.WorkspaceWrite)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	spec := func(f *fence.Fence, what string) sandbox.Spec {
		return sandbox.Spec{Argv: []string{toolPath(), "tool", "opens", l.W + "/file", what}, Dir: l.W, Caller: l.callerEnv(), TempDir: l.T, Fence: f, Inherit: &[3]*os.File{null, null, null}}
	}
	full := l.fence(fence.FullAccess)
	run := func(f *fence.Fence, what string) func() error {
		return func() error {
			p, err := l.r.Start(context.Background(), spec(f, what))
			if err != nil {
				return err
			}
			<-p.Over()
			return nil
		}
	}
	const calls = 2000
	for _, what := range []string{"write", "read", "rename"} {
		b.Run(what, func(b *testing.B) {
			none, some := map[string][]time.Duration{}, map[string][]time.Duration{}
			kinds := map[string]func(what string) error{
				"bare":       func(w string) error { return run(full, w)() },
				"landlock":   func(w string) error { return l.r.RunUnsupervised(f, spec(f, w)) },
				"supervised": func(w string) error { return run(f, w)() },
			}
			for b.Loop() {
				for name, k := range kinds {
					for _, m := range []struct {
						w  string
						to map[string][]time.Duration
					}{{"nothing", none}, {what, some}} {
						begin := time.Now()
						if err := k(m.w); err != nil {
							b.Fatal(err)
						}
						m.to[name] = append(m.to[name], time.Since(begin))
					}
				}
			}
			for name := range kinds {
				b.ReportMetric(float64((median(some[name])-median(none[name])).Nanoseconds())/1000/calls, name+"-µs/call")
			}
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkKillTree is from the kill to the last of 200 processes gone.
func BenchmarkKillTree(b *testing.B) {
	l := newLab(b)
	f := l.fence(fence.WorkspaceWrite)
	var took []time.Duration
	for b.Loop() {
		k := newMark()
		p, err := l.r.Start(context.Background(), l.spec(f, `for i in $(seq 100); do setsid sleep 1000.`+k+` & ( setsid sleep 1000.`+k+` & ) ; done; wait`))
		if err != nil {
			b.Fatal(err)
		}
		eventually(b, "the tree has grown", func() bool { return len(running("sleep 1000."+k)) >= 200 })
		begin := time.Now()
		p.Kill()
		<-p.Over()
		took = append(took, time.Since(begin))
	}
	b.ReportMetric(float64(median(took).Microseconds())/1000, "ms")
}

func init() {
	// opens FILE WHAT: 2,000 calls of a kind, or none.
	tools["opens"] = func(a []string) error {
		flags := unix.O_RDONLY
		switch a[1] {
		case "nothing":
			return nil
		case "write":
			flags = unix.O_WRONLY | unix.O_CREAT
		case "rename":
			if err := os.WriteFile(a[0], nil, 0o644); err != nil {
				return err
			}
			for range 1000 {
				if err := unix.Rename(a[0], a[0]+"2"); err != nil {
					return err
				}
				if err := unix.Rename(a[0]+"2", a[0]); err != nil {
					return err
				}
			}
			return nil
		}
		fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT, 0o644)
		if err != nil {
			return err
		}
		_ = unix.Close(fd)
		for range 2000 {
			fd, err := unix.Open(a[0], flags, 0o644)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
		}
		return nil
	}
}
