package sqlite

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"handoffd/engine/fault"
)

const (
	walHeader   = 32
	frameHeader = 24
)

// wal is the write-ahead log of a database, up to the last commit in it.
type wal struct {
	f      *os.File
	header [walHeader]byte
	// frame holds where the newest version of a page begins in the file.
	frame  map[uint32]int64
	order  []uint32 // pages by frame
	pages  uint32   // of the database at the last commit; 0 without one
	frames int64
}

// openWAL reads the log at path. It returns nil when there is none or it holds
// no commit: then the database file is all there is.
func openWAL(path string, pageSize int) (*wal, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.SourceMissing, "open the log of the database: %w", err)
	}
	w := &wal{f: f, frame: map[uint32]int64{}}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fault.New(fault.SourceMissing, "the log of the database is no file")
	}
	if err := w.scan(pageSize); err != nil {
		_ = f.Close()
		return nil, err
	}
	return w, nil
}

// scan finds the frames of committed transactions: those whose salts are the
// header's and whose checksums go on from it. A log that is emptied, of another
// generation or torn ends at that point, which is what its owner makes of it
// after a crash.
func (w *wal) scan(pageSize int) error {
	if n, _ := w.f.ReadAt(w.header[:], 0); n < walHeader {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(w.header[:]) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return nil
	}
	sum := checksum{order: order}
	sum.add(w.header[:24])
	if !sum.is(w.header[24:]) || int(binary.BigEndian.Uint32(w.header[8:])) != pageSize {
		return nil
	}
	buf := make([]byte, frameHeader+pageSize)
	r := io.NewSectionReader(w.f, walHeader, 1<<62)
	type placed struct {
		page uint32
		at   int64
	}
	var open []placed // of the transaction that is not committed yet
	for at := int64(walHeader); ; at += int64(len(buf)) {
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil
		}
		page, size := binary.BigEndian.Uint32(buf), binary.BigEndian.Uint32(buf[4:])
		if page == 0 || string(buf[8:16]) != string(w.header[16:24]) {
			return nil
		}
		sum.add(buf[:8])
		sum.add(buf[frameHeader:])
		if !sum.is(buf[16:24]) {
			return nil
		}
		open = append(open, placed{page, at + frameHeader})
		if size == 0 {
			continue
		}
		for _, p := range open {
			w.frame[p.page] = p.at
			w.order = append(w.order, p.page)
		}
		w.frames += int64(len(open))
		open, w.pages = open[:0], size
	}
}

// check reports ErrChanged when the owner has begun the log anew, so that
// frames may hold other pages than they did.
func (w *wal) check() error {
	var now [walHeader]byte
	if _, err := w.f.ReadAt(now[:], 0); err != nil && !errors.Is(err, io.EOF) || now != w.header {
		return ErrChanged
	}
	return nil
}

// checksum is the running one of the log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	s0, s1 := c.s0, c.s1
	if c.order == binary.LittleEndian {
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.LittleEndian.Uint32(b) + s1
			s1 += binary.LittleEndian.Uint32(b[4:]) + s0
		}
	} else {
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.BigEndian.Uint32(b) + s1
			s1 += binary.BigEndian.Uint32(b[4:]) + s0
		}
	}
	c.s0, c.s1 = s0, s1
}

func (c *checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c.s0 && binary.BigEndian.Uint32(b[4:]) == c.s1
}
