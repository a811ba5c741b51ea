package gemini

import "encoding/binary"

// maxSeen bounds the parts remembered. A part older than that and written
// again is handed out again, under the same id.
const maxSeen = 2048

// memory holds what was handed out as pairs of hashes, of a part's name and of
// its text, oldest first. It is the bytes that are stored.
type memory []byte

const pair = 16

// holds reports whether the part was handed out, with whatever text.
func (m memory) holds(id uint64) bool {
	for i := 0; i+pair <= len(m); i += pair {
		if binary.LittleEndian.Uint64(m[i:]) == id {
			return true
		}
	}
	return false
}

// has reports whether the part was handed out with this text.
func (m memory) has(id, text uint64) bool {
	for i := 0; i+pair <= len(m); i += pair {
		if binary.LittleEndian.Uint64(m[i:]) == id && binary.LittleEndian.Uint64(m[i+8:]) == text {
			return true
		}
	}
	return false
}

// add remembers a part.
func (m *memory) add(id, text uint64) {
	if m.has(id, text) {
		return
	}
	*m = binary.LittleEndian.AppendUint64(*m, id)
	*m = binary.LittleEndian.AppendUint64(*m, text)
	if n := len(*m) - maxSeen*pair; n > 0 {
		*m = append((*m)[:0], (*m)[n:]...)
	}
}
