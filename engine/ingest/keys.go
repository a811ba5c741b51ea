package ingest

import "handoffd/engine/store"

// scanLimit is up to how many lookups a plain scan of the keys is cheaper
// than building the table.
const scanLimit = 32

// Keys are the keys of the turns captured so far. A session that grows by
// a turn asks a handful of questions, a first reading asks one a turn; so the
// table is built when it pays.
type Keys struct {
	list    []store.Key
	table   []store.Key // open addressing; zero is empty
	used    int
	hasZero bool
	lookups int
}

func (s *Keys) has(k store.Key) bool {
	if s.table == nil {
		s.lookups++
		if s.lookups <= scanLimit {
			for _, o := range s.list {
				if o == k {
					return true
				}
			}
			return false
		}
		s.build()
	}
	if k == 0 {
		return s.hasZero
	}
	_, found := s.find(k)
	return found
}

func (s *Keys) add(k store.Key) {
	s.list = append(s.list, k)
	if s.table != nil {
		s.insert(k)
	}
}

func (s *Keys) build() {
	s.table = make([]store.Key, tableSize(len(s.list)))
	s.used = 0
	for _, k := range s.list {
		s.insert(k)
	}
}

func tableSize(n int) int {
	size := 1024
	for size < 2*n {
		size *= 2
	}
	return size
}

func (s *Keys) insert(k store.Key) {
	if k == 0 {
		s.hasZero = true
		return
	}
	if 4*(s.used+1) > 3*len(s.table) {
		s.build()
	}
	if i, found := s.find(k); !found {
		s.table[i] = k
		s.used++
	}
}

// find returns the slot of k, or the empty one where it belongs.
func (s *Keys) find(k store.Key) (slot int, found bool) {
	mask := len(s.table) - 1
	for i := int(uint64(k)*0x9E3779B97F4A7C15>>20) & mask; ; i = (i + 1) & mask {
		switch s.table[i] {
		case k:
			return i, true
		case 0:
			return i, false
		}
	}
}

// Cut forgets the keys from n on.
func (s *Keys) Cut(n int) {
	if n < len(s.list) {
		s.list = s.list[:n]
		s.table, s.hasZero = nil, false
	}
}

// NewKeys returns the keys in list, in the order of the turns.
func NewKeys(list []store.Key) *Keys { return &Keys{list: list} }

// counts returns how often each key occurs.
func (s *Keys) counts() map[store.Key]int {
	out := make(map[store.Key]int, len(s.list))
	for _, k := range s.list {
		out[k]++
	}
	return out
}
