package permission

// Observer is told of each decision, before what was decided about happens:
// op is read, write, execute or connect.
type Observer func(op, target string, d Decision) error

// Guard is what the rest of the product asks before it touches anything
// outside its store. Each method returns nil, or a refusal of kind
// fault.Denied or fault.NeedsAuth. It is safe for concurrent use if its
// observer is.
type Guard struct {
	scope   Scope
	observe Observer
}

// Guard returns the guard of a scope. named are the paths that the user named
// on the command line or in a configuration of theirs, which the built-in
// policy takes for an approval; a denied root still wins. observe may be nil;
// its error refuses, because a decision that cannot be recorded must not be
// acted on.
func (s Scope) Guard(observe Observer, named ...string) *Guard {
	return &Guard{s.Named(named...), observe}
}

// Allow decides about an operation of any risk; target "" is none.
func (g *Guard) Allow(op string, risk Risk, target string) error {
	d := g.scope.Evaluate(risk, target)
	return g.settle(op, target, d)
}

func (g *Guard) settle(op, target string, d Decision) error {
	if g.observe != nil {
		if err := g.observe(op, target, d); err != nil {
			return err
		}
	}
	return d.Err()
}

// Read decides about reading a file or a directory.
func (g *Guard) Read(path string) error { return g.Allow("read", R0, path) }

// Write decides about writing a file or into a directory.
func (g *Guard) Write(path string) error { return g.Allow("write", R1, path) }

// Execute decides about running the program at a path. What lies among the
// system's programs may be run; elsewhere it must be approved, because a
// program does what it likes with the workspace's rights.
func (g *Guard) Execute(path string) error {
	class := g.scope.Classify(path)
	d := Decide(g.scope.Policy, R1, class)
	if class == SystemPath {
		d = Decide(g.scope.Policy, R1, Unplaced)
		if d.Classification != "" {
			d.Classification = class
		}
	}
	return g.settle("execute", path, d)
}

// Connect decides about talking to a host. A host that the user named is
// judged by the naming as a path is.
func (g *Guard) Connect(host string) error {
	d := Decide(g.scope.Policy, R2, Unplaced)
	if d.Verdict == NeedsAuth && g.scope.Policy.NamedTargets == NamedAllow {
		for _, name := range g.scope.named {
			if name == host {
				d.Verdict, d.Reason = Allowed, string(d.Level)+" authorized by name at "+string(R2)
			}
		}
	}
	return g.settle("connect", host, d)
}
