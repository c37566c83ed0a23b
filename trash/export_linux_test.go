package trash

// SetHook has f called between every two steps.
func (b *Bin) SetHook(f func(point string)) { b.b.(*freedesktop).at = f }

// SetPlainRename makes every rename go as where nothing can rename without
// replacing (FAT on old kernels, some FUSE and network file systems).
func (b *Bin) SetPlainRename() { b.b.(*freedesktop).plainRename = true }

// NthName is nthName.
func NthName(name string, n, limit int) string { return nthName(name, n, limit) }

// MountPoints gives the points of a mount table that are looked at.
func MountPoints(table string) (points []string) {
	for _, m := range parseMounts(table) {
		if !m.auto {
			points = append(points, m.point)
		}
	}
	return points
}

// SetMax replaces [MaxGroup].
func (g *Group) SetMax(n int) { g.g.(*removal).max = n }
