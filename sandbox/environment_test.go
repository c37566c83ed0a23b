package sandbox_test

import (
	"slices"
	"testing"

	"github.com/wattle-dev/wattle/fence"
	"github.com/wattle-dev/wattle/sandbox"
)

// TestEnvironment: built from nothing, by the names that pass.
func TestEnvironment(t *testing.T) {
	caller := []string{
		"PATH=/bin", "HOME=/home/u", "LANG=C", "LC_ALL=C", "TERM=dumb", "USER=u",
		"AWS_SECRET_ACCESS_KEY=s", "GITHUB_TOKEN=s", "API_KEY=s", "DB_PASSWORD=s", "MYPASSWD=s", "CLIENT_SECRET=s",
		"SSH_AUTH_SOCK=/run/agent", "DBUS_SESSION_BUS_ADDRESS=x", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/x", "LD_AUDIT=/x",
		"WATTLE_SOCKET=/run/w", "WATTLE_SANDBOX=forged", "WATTLE_COMMAND=x", "OTHER=x", "=odd", "novalue", "BASH_ENV=/x", "PYTHONPATH=/x",
	}
	always := []string{"WATTLE_SANDBOX_NETWORK=1"}
	temp := []string{"TEMP=/tmp/t", "TMP=/tmp/t", "TMPDIR=/tmp/t", "TMPPREFIX=/tmp/t/zsh"}
	for _, c := range []struct {
		name    string
		policy  fence.Policy
		request map[string]string
		tmp     string
		want    []string
	}{
		{
			"names that pass by default", fence.Policy{Mode: fence.ReadOnly}, nil, "/tmp/t",
			append([]string{"HOME=/home/u", "LANG=C", "LC_ALL=C", "PATH=/bin", "TERM=dumb", "USER=u", "WATTLE_SANDBOX=read-only"}, append(always, temp...)...),
		},
		{
			"names of the policy, secrets never", fence.Policy{Mode: fence.ReadOnly, Env: fence.Environment{Pass: []string{"*"}}}, nil, "",
			append([]string{"BASH_ENV=/x", "HOME=/home/u", "LANG=C", "LC_ALL=C", "OTHER=x", "PATH=/bin", "PYTHONPATH=/x", "TERM=dumb", "USER=u", "WATTLE_SANDBOX=read-only"}, always...),
		},
		{
			"no name passes: a path is still there", fence.Policy{Mode: fence.ReadOnly, Env: fence.Environment{Pass: []string{}}}, nil, "",
			append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "WATTLE_SANDBOX=read-only"}, always...),
		},
		{
			"the policy sets, the request sets last", fence.Policy{Mode: fence.ReadOnly, Env: fence.Environment{Pass: []string{"PATH"}, Set: map[string]string{"A": "policy", "B": "policy"}}},
			map[string]string{"B": "request", "API_KEY": "meant", "TMPDIR": "/own", "WATTLE_SANDBOX": "forged", "bad=name": "x", "nul": "a\x00b", "": "x"}, "",
			append([]string{"A=policy", "API_KEY=meant", "B=request", "PATH=/bin", "TMPDIR=/own", "WATTLE_SANDBOX=read-only"}, always...),
		},
		{
			"network off", fence.Policy{Mode: fence.ReadOnly, Network: fence.NetworkOff, Env: fence.Environment{Pass: []string{"PATH"}}}, nil, "",
			[]string{"PATH=/bin", "WATTLE_SANDBOX=read-only", "WATTLE_SANDBOX_NETWORK=0"},
		},
		{
			"full access: all but ours, no temporary directory", fence.Policy{Mode: fence.FullAccess, Env: fence.Environment{Set: map[string]string{"HOME": "/elsewhere", "NEW": "x"}}}, nil, "/tmp/t",
			append([]string{"API_KEY=s", "AWS_SECRET_ACCESS_KEY=s", "BASH_ENV=/x", "CLIENT_SECRET=s", "DBUS_SESSION_BUS_ADDRESS=x", "DB_PASSWORD=s", "GITHUB_TOKEN=s",
				"HOME=/home/u", "LANG=C", "LC_ALL=C", "LD_AUDIT=/x", "LD_LIBRARY_PATH=/x", "LD_PRELOAD=/x.so", "MYPASSWD=s", "NEW=x", "OTHER=x", "PATH=/bin", "PYTHONPATH=/x",
				"SSH_AUTH_SOCK=/run/agent", "TERM=dumb", "USER=u", "WATTLE_SANDBOX=full-access"}, always...),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := fence.New(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			got := sandbox.Environment(f, caller, c.request, c.tmp)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestEnvironmentOfAPrivateCache: what the mode cannot write is replaced by
// the command's own temporary directory.
func TestEnvironmentOfAPrivateCache(t *testing.T) {
	dir := t.TempDir()
	cache, own := dir+"/cache", dir+"/own"
	p := fence.Policy{Mode: fence.ReadOnly, Caches: []fence.Entry{{Path: cache, Source: "preset:go"}},
		Env: fence.Environment{Pass: []string{}, Set: map[string]string{"GOCACHE": cache + "/go", "GOFLAGS": "-x"}}}
	for mode, want := range map[fence.Mode]string{fence.ReadOnly: own, fence.FullAccess: cache + "/go"} {
		p.Mode = mode
		f, err := fence.New(p)
		if err != nil {
			t.Fatal(err)
		}
		env := sandbox.Environment(f, nil, nil, own)
		if !slices.Contains(env, "GOCACHE="+want) || !slices.Contains(env, "GOFLAGS=-x") {
			t.Errorf("%s: %q", mode, env)
		}
	}
}
