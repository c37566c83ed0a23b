//go:build !portable

package anchor

// ForceFallback switches the latches as a seccomp filter would, and back.
func ForceFallback(on bool) {
	noOpenat2.Store(on)
	noStatx.Store(on)
}

// MaxHeld is how many levels a removal holds open.
const MaxHeld = maxHeld
