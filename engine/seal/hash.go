package seal

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
)

// Zero is what stands in a render for a hash that is not known yet.
const Zero = "0000000000000000000000000000000000000000000000000000000000000000"

// Sum returns the SHA-256 of b in hex.
func Sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// Hash is a SHA-256 that can be saved in the middle and continued in another
// process.
type Hash struct{ h hash.Hash }

// NewHash returns the hash of nothing.
func NewHash() *Hash { return &Hash{sha256.New()} }

// RestoreHash returns the hash that Save saved; nil is the hash of nothing.
func RestoreHash(saved []byte) (*Hash, error) {
	h := NewHash()
	if len(saved) == 0 {
		return h, nil
	}
	if err := h.h.(encoding.BinaryUnmarshaler).UnmarshalBinary(saved); err != nil {
		return nil, fmt.Errorf("restore hash: %w", err)
	}
	return h, nil
}

// Write implements io.Writer and never fails.
func (h *Hash) Write(p []byte) (int, error) { return h.h.Write(p) }

// Sum returns the hash so far in hex; writing may go on.
func (h *Hash) Sum() string { return hex.EncodeToString(h.h.Sum(nil)) }

// Save returns the state, 108 bytes.
func (h *Hash) Save() []byte {
	b, err := h.h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		panic("seal: SHA-256 state cannot be saved: " + err.Error())
	}
	return b
}

// Clone returns an independent copy.
func (h *Hash) Clone() *Hash {
	c, err := RestoreHash(h.Save())
	if err != nil {
		panic("seal: " + err.Error())
	}
	return c
}
