package sandbox

// KeptChunks tells how many of n chunks of one byte are kept within a limit.
func KeptChunks(limit, n int) int {
	o := newOutput(limit)
	for range n {
		o.add(Stdout, []byte{'x'})
	}
	chunks, _, _, _ := o.read(0, 0)
	return len(chunks)
}
