package provider

import "sync"

// ObservationState is what an owner knows of a target.
type ObservationState string

const (
	// Unseen: nothing.
	Unseen ObservationState = "unseen"
	// Absent: that nothing was there.
	Absent ObservationState = "absent"
	// Present: a version of it.
	Present ObservationState = "present"
)

// Observations is the read-before-write rule of one owner (fs-contract section
// 6): what it has read it may overwrite, unless that has changed since. It
// does no I/O and knows of nothing but what it is told. Any number of
// goroutines may use one at once.
//
//	state       write intent        edit and delete intent
//	unseen      createIfAbsent      FS_NOT_OBSERVED
//	absent      createIfAbsent      FS_NOT_FOUND
//	present(v)  replaceIfVersion v  v
//
// It is bounded: the targets that were neither recorded nor asked for in a long
// time become unseen, which costs their owner another read and never lets it
// overwrite what it has not read. Of a limit of n, the n/2 that were recorded
// or asked for last are always known.
type Observations struct {
	limit int // of each generation

	mu sync.Mutex
	// When young is full it becomes old and what was old is forgotten. What is
	// asked for becomes young again.
	young, old map[TargetKey]Observation
}

var _ Guards = (*Observations)(nil)

// MaxObservations is how many targets one owner remembers.
const MaxObservations = 1 << 16

// NewObservations makes an empty table of at most limit targets; 0 is
// [MaxObservations].
func NewObservations(limit int) *Observations {
	if limit <= 0 {
		limit = MaxObservations
	}
	return &Observations{limit: max(limit/2, 1), young: map[TargetKey]Observation{}}
}

// State is what is known of a target; the version is set with [Present].
func (o *Observations) State(t Target) (ObservationState, Version) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.young[t.TargetKey]
	if !ok {
		if known, ok = o.old[t.TargetKey]; !ok {
			return Unseen, ""
		}
		o.put(t.TargetKey, known)
	}
	if known.Version == "" {
		return Absent, ""
	}
	return Present, known.Version
}

// WriteIntent implements [Guards]. It never refuses.
func (o *Observations) WriteIntent(t Target) (*WriteIntent, error) {
	if state, v := o.State(t); state == Present {
		return &WriteIntent{Kind: ReplaceIfVersion, Version: v}, nil
	}
	return &WriteIntent{Kind: CreateIfAbsent}, nil
}

// EditIntent implements [Guards]: FS_NOT_OBSERVED, FS_NOT_FOUND.
func (o *Observations) EditIntent(t Target) (*VersionGuard, error) { return o.known(t, "edit") }

// DeleteIntent implements [Guards]: FS_NOT_OBSERVED, FS_NOT_FOUND.
func (o *Observations) DeleteIntent(t Target) (*VersionGuard, error) { return o.known(t, "delete") }

func (o *Observations) known(t Target, op string) (*VersionGuard, error) {
	switch state, v := o.State(t); state {
	case Present:
		return &VersionGuard{Version: v}, nil
	case Absent:
		return nil, &Error{Code: CodeNotFound, Op: op, Path: t.DisplayPath, Detail: "nothing was there when it was looked at"}
	}
	return nil, &Error{Code: CodeNotObserved, Op: op, Path: t.DisplayPath, Detail: "it has not been read"}
}

// Observed implements [Guards].
func (o *Observations) Observed(t Target, seen Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(t.TargetKey, seen)
}

// Forget makes a target unseen.
func (o *Observations) Forget(t Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.young, t.TargetKey)
	delete(o.old, t.TargetKey)
}

func (o *Observations) put(k TargetKey, seen Observation) {
	if _, ok := o.young[k]; !ok && len(o.young) >= o.limit {
		o.old, o.young = o.young, make(map[TargetKey]Observation)
	}
	o.young[k] = seen
}
