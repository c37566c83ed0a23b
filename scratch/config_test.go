package scratch_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/scratch"
)

func TestAutoCleanAliases(t *testing.T) {
	for in, want := range map[string]scratch.AutoClean{
		`"turn"`: "turn", `"true"`: "turn", `true`: "turn", `"session"`: "session",
		`"off"`: "off", `"false"`: "off", `false`: "off",
		`"Turn"`: "", `""`: "", `1`: "", `null`: "", `"on"`: "", `["turn"]`: "",
	} {
		var a scratch.AutoClean
		err := json.Unmarshal([]byte(in), &a)
		if a != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v, want %q", in, a, err, want)
		}
	}
	if a, err := scratch.ParseAutoClean("false"); a != scratch.CleanOff || err != nil {
		t.Errorf("false: %q %v", a, err)
	}
	_, err := scratch.ParseAutoClean("maybe")
	code(t, "maybe", err, scratch.CodeConfigInvalid)
}

func TestConfigValidation(t *testing.T) {
	for in, ok := range map[string]bool{
		`{}`:                                                true,
		`{"siblingDir":"scratch.d"}`:                        true,
		`{"siblingDir":"with space"}`:                       true,
		`{"siblingDir":"täglich"}`:                          true,
		`{"root":"/var/scratch"}`:                           true,
		`{"siblingDir":""}`:                                 false,
		`{"siblingDir":"."}`:                                false,
		`{"siblingDir":".."}`:                               false,
		`{"siblingDir":"a/b"}`:                              false,
		`{"siblingDir":"/tmp"}`:                             false,
		`{"siblingDir":"a\u0000b"}`:                         false,
		`{"autoClean":"daily"}`:                             false,
		`{"root":"relative"}`:                               false,
		`{"root":"/a\u0000b"}`:                              false,
		`{"siblingDir":"` + strings.Repeat("x", 256) + `"}`: false,
	} {
		c := scratch.DefaultConfig()
		err := json.Unmarshal([]byte(in), &c, json.RejectUnknownMembers(true))
		if err == nil {
			err = c.Validate()
			if err != nil {
				code(t, in, err, scratch.CodeConfigInvalid)
			}
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v, want valid %v", in, err, ok)
		}
	}
	code(t, "zero", scratch.Config{}.Validate(), scratch.CodeConfigInvalid)
}

func TestConfigOverrides(t *testing.T) {
	var o scratch.Overrides
	must(t, json.Unmarshal([]byte(`{"autoClean":false}`), &o, json.RejectUnknownMembers(true)))
	c, err := scratch.DefaultConfig().With(o)
	if err != nil || c.AutoClean != scratch.CleanOff || c.SiblingDir != "tmp" {
		t.Errorf("%+v %v", c, err)
	}
	empty := ""
	_, err = c.With(scratch.Overrides{SiblingDir: &empty})
	code(t, "given as empty", err, scratch.CodeConfigInvalid)
}

func TestNewRefusesAnInvalidConfig(t *testing.T) {
	s := newSite(t)
	for _, sib := range []string{"", ".", "..", "a/b", "a\x00"} {
		c := scratch.DefaultConfig()
		c.SiblingDir = sib
		_, err := s.m.New("s", s.workspace, c)
		code(t, sib, err, scratch.CodeConfigInvalid)
	}
}

// Whether an owner is gone: lock × process × whether that is this one.
func TestOwnerGone(t *testing.T) {
	for _, c := range []struct {
		lock, who string
		own       bool
		want      scratch.KeptReason
	}{
		{"free", "dead", false, ""},
		{"free", "unknown", false, ""}, // before a reboot; the lock is the kernel's word
		{"free", "alive", false, scratch.KeptOwnerAlive},
		{"free", "alive", true, ""}, // a session of ours that has ended
		{"held", "dead", false, scratch.KeptInUse},
		{"held", "unknown", false, scratch.KeptInUse},
		{"held", "alive", true, scratch.KeptInUse},
		{"none", "dead", false, ""},
		{"none", "unknown", false, scratch.KeptUncertain},
		{"none", "alive", false, scratch.KeptOwnerAlive},
		{"none", "alive", true, scratch.KeptOwnerAlive},
		{"broken", "dead", false, scratch.KeptUncertain},
		{"broken", "alive", true, scratch.KeptUncertain},
	} {
		if got := scratch.OwnerGone(c.lock, c.who, c.own); got != c.want {
			t.Errorf("lock %s, process %s, own %v: %q, want %q", c.lock, c.who, c.own, got, c.want)
		}
	}
}
