package patch

import "strings"

// maxPairs bounds the table of one pairing and maxPairsAll that of all hunks of
// a call. Above it, what lies between the equal ends of a hunk counts as
// replaced.
const (
	maxPairs    = 1 << 22
	maxPairsAll = 1 << 26
)

// kinds gives the kinds of a hunk's lines. Those that it has are believed when
// they agree with its lines; else its lines are paired by their longest common
// subsequence. budget is what is left of maxPairsAll.
func (h *Hunk) kinds(budget *int) string {
	if h.agrees() {
		return h.Kinds
	}
	return pair(h.OldLines, h.NewLines, budget)
}

// agrees tells whether the kinds are those of the lines.
func (h *Hunk) agrees() bool {
	old, added := h.OldLines, h.NewLines
	for i := 0; i < len(h.Kinds); i++ {
		k := h.Kinds[i]
		switch {
		case k == Context && len(old) > 0 && len(added) > 0 && old[0] == added[0]:
			old, added = old[1:], added[1:]
		case k == Removed && len(old) > 0:
			old = old[1:]
		case k == Added && len(added) > 0:
			added = added[1:]
		default:
			return false
		}
	}
	return len(old) == 0 && len(added) == 0
}

func pair(old, added []string, budget *int) string {
	head := 0
	for head < len(old) && head < len(added) && old[head] == added[head] {
		head++
	}
	old, added = old[head:], added[head:]
	tail := 0
	for tail < len(old) && tail < len(added) && old[len(old)-1-tail] == added[len(added)-1-tail] {
		tail++
	}
	old, added = old[:len(old)-tail], added[:len(added)-tail]
	var b strings.Builder
	b.Grow(head + len(old) + len(added) + tail)
	write := func(kind byte, n int) {
		for range n {
			b.WriteByte(kind)
		}
	}
	write(Context, head)
	cells := len(old) * len(added)
	if cells == 0 || cells > maxPairs || cells > *budget {
		write(Removed, len(old))
		write(Added, len(added))
	} else {
		*budget -= cells
		walk(&b, old, added)
	}
	write(Context, tail)
	return b.String()
}

// walk writes the kinds along one longest common subsequence, of several the
// one that removes first.
func walk(b *strings.Builder, old, added []string) {
	// step[i*len(added)+j] is the kind with which the rest from old[i] and
	// added[j] begins. length and below are two rows of the lengths.
	step := make([]byte, len(old)*len(added))
	length, below := make([]int32, len(added)+1), make([]int32, len(added)+1)
	for i := len(old) - 1; i >= 0; i-- {
		length, below = below, length
		length[len(added)] = 0
		for j := len(added) - 1; j >= 0; j-- {
			at := i*len(added) + j
			switch {
			case old[i] == added[j]:
				step[at], length[j] = Context, below[j+1]+1
			case below[j] >= length[j+1]:
				step[at], length[j] = Removed, below[j]
			default:
				step[at], length[j] = Added, length[j+1]
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(added) {
		k := byte(Removed)
		switch {
		case i == len(old):
			k = Added
		case j < len(added):
			k = step[i*len(added)+j]
		}
		b.WriteByte(k)
		if k != Added {
			i++
		}
		if k != Removed {
			j++
		}
	}
}
