package gemini

import "encoding/json"

// maxSeen bounds the parts remembered; above it the older half is forgotten.
// A part older than that and written again is handed out again, under the
// same id.
const maxSeen = 4096

// seen is a part that was handed out: the hashes of its name and of its text.
type seen struct{ id, text uint64 }

// memory holds what was handed out.
type memory struct {
	order []seen
	ids   map[uint64]int // how many of order have this id
	pairs map[seen]struct{}
}

// holds reports whether the part was handed out, with whatever text.
func (m *memory) holds(id uint64) bool { return m.ids[id] > 0 }

// has reports whether the part was handed out with this text.
func (m *memory) has(id, text uint64) bool {
	_, ok := m.pairs[seen{id, text}]
	return ok
}

// add remembers a part.
func (m *memory) add(id, text uint64) {
	if m.has(id, text) {
		return
	}
	if len(m.order) >= maxSeen {
		keep := append([]seen(nil), m.order[maxSeen/2:]...)
		*m = memory{}
		for _, s := range keep {
			m.add(s.id, s.text)
		}
	}
	if m.ids == nil {
		m.ids, m.pairs = make(map[uint64]int), make(map[seen]struct{})
	}
	m.order = append(m.order, seen{id, text})
	m.ids[id]++
	m.pairs[seen{id, text}] = struct{}{}
}

// MarshalJSON implements json.Marshaler.
func (m *memory) MarshalJSON() ([]byte, error) {
	flat := make([]byte, 0, 16*len(m.order))
	for _, s := range m.order {
		for _, n := range []uint64{s.id, s.text} {
			for shift := 0; shift < 64; shift += 8 {
				flat = append(flat, byte(n>>shift))
			}
		}
	}
	return json.Marshal(flat)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *memory) UnmarshalJSON(data []byte) error {
	var flat []byte
	if err := json.Unmarshal(data, &flat); err != nil {
		return err
	}
	*m = memory{}
	for ; len(flat) >= 16; flat = flat[16:] {
		var n [2]uint64
		for i := range 16 {
			n[i/8] |= uint64(flat[i]) << (8 * (i % 8))
		}
		m.add(n[0], n[1])
	}
	return nil
}
