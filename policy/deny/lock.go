package deny

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/lockfile"
)

// LockFile is the lock of a session as the published tool writes it.
type LockFile struct {
	Schema  int    `json:"schema"`
	Session string `json:"session_id"`
	PID     int    `json:"pid"`
	Started string `json:"started_at"`
	Host    string `json:"host"`
	Nonce   string `json:"nonce"`
	// By is this program's name in locks of ours, which stand for a lock of
	// the kernel.
	By string `json:"by,omitempty"`
}

const by = "handoffd"

// Nonce returns 16 hexadecimal digits drawn by lot.
func Nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ParseLock reads a lock file; ok is false when it names nobody.
func ParseLock(raw []byte) (l LockFile, ok bool) {
	if err := json.Unmarshal(raw, &l, lenient); err != nil {
		return LockFile{}, false
	}
	return l, l.PID > 0 && l.Host != "" && l.Nonce != ""
}

// Lock takes the lock of a session. The error is fault.Refused when somebody
// else has it.
func (s Store) Lock(ctx context.Context, session string) (*lockfile.Lock, error) {
	body, err := Encode(LockFile{
		Schema: schema, Session: session, PID: os.Getpid(), Started: Stamp(s.Now()), Host: s.Host, Nonce: Nonce(), By: by,
	})
	if err != nil {
		return nil, err
	}
	if err := s.makeDirs(""); err != nil {
		return nil, err
	}
	return lockfile.Take(ctx, s.LockPath(session), lockfile.Format{Body: body, Host: s.Host, Parse: func(raw []byte) lockfile.Owner {
		l, ok := ParseLock(raw)
		return lockfile.Owner{PID: l.PID, Host: l.Host, Known: ok, Ours: l.By == by}
	}})
}

// ReadLock reads a session's lock file, with its bytes. The error is
// fault.Operational when there is none, else fault.Refused.
func (s Store) ReadLock(session string) (LockFile, []byte, error) {
	raw, err := safefile.ReadSmall(s.LockPath(session), maxFile)
	if err != nil {
		if os.IsNotExist(err) {
			return LockFile{}, nil, fault.New(fault.Operational, "session %q is not locked", session)
		}
		return LockFile{}, nil, fault.New(fault.Refused, "the lock of session %q cannot be read: %w", session, err)
	}
	l, ok := ParseLock(raw)
	if !ok {
		return LockFile{}, nil, fault.New(fault.Refused, "the lock of session %q is not understood", session)
	}
	return l, raw, nil
}

// Ours reports whether this program made the lock.
func (l LockFile) Ours() bool { return l.By == by }
