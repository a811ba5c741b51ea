package all

import (
	"handoffd/engine/fault"
	"handoffd/engine/harness"
)

// Named returns the bundle format for whose kind the file at path is named.
func Named(path string) (harness.Bundle, bool) {
	for _, f := range formats {
		if b, ok := f.(harness.Bundle); ok && b.Holds(path) {
			return b, true
		}
	}
	return nil, false
}

// Bundle finds the format of a file that holds many sessions, or one whose
// content is in files beside it. database says that it is a SQLite database:
// then its tables decide, whatever it is called. The error is fault.Unsupported
// for a database of nobody we know, and that of reading it; found is false for
// an ordinary file.
func Bundle(path string, database bool) (b harness.Bundle, found bool, err error) {
	named, ok := Named(path)
	if ok && named.Single() {
		return named, true, nil
	}
	if !database {
		return nil, false, nil
	}
	if ok {
		if err = known(named, path); err == nil || !fault.Is(err, fault.Unsupported) {
			return named, true, err
		}
	}
	for _, f := range formats {
		b, is := f.(harness.Bundle)
		if !is || b.Single() || b == named {
			continue
		}
		switch other := known(b, path); {
		case other == nil:
			return b, true, nil
		case !fault.Is(other, fault.Unsupported):
			return nil, true, other
		case err == nil:
			err = other
		}
	}
	if !ok {
		err = fault.New(fault.Unsupported, "%s is a database that no known format reads", path)
	}
	return nil, true, err
}

// known asks a format whether it can read a database: any question does.
func known(b harness.Bundle, path string) error {
	_, _, err := b.Key(path, "")
	return err
}

// Owner is the bundle of which the file at path holds a part; ok is false for
// a file that is no bundle's.
func Owner(path string) (bundle string, ok bool) {
	for _, f := range formats {
		if b, is := f.(harness.Bundle); is {
			if o, ok := b.Owner(path); ok {
				return o, true
			}
		}
	}
	return "", false
}
