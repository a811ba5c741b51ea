// Package sqlite reads SQLite databases that belong to running programs of
// others. It reads the file format itself and joins none of SQLite's protocol:
// it takes no lock, maps no shared memory, starts no recovery and writes
// nothing, so no -wal, -shm or -journal file appears beside a foreign database
// and no writer ever waits for a reader. What the owner commits while pages are
// read is noticed afterwards by Check, and the reading is done again.
//
// It answers no SQL: rows come from ordinary tables by name, whole or by a
// value in an index. Views, triggers, virtual tables and tables WITHOUT ROWID
// are not read.
//
// Source of the format: sqlite.org/fileformat2.html and sqlite.org/walformat.html.
package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

// Magic is how every database begins.
const Magic = "SQLite format 3\x00"

// The names that SQLite gives the files beside a database.
const (
	WAL     = "-wal"
	Journal = "-journal"
)

const headerBytes = 100

// ErrChanged says that the owner wrote while pages were read, so that they may
// be of two states.
var ErrChanged = errors.New("the database changed while it was read")

// DB is one look at a database: what was committed when it was opened. It is
// used by one goroutine, and a new one is opened for every look.
type DB struct {
	path     string
	main     *os.File
	wal      *wal // nil when there is none
	was      state
	pageSize int
	usable   int // bytes of a page without the reserved ones
	pages    uint32
	utf16    binary.ByteOrder // nil for UTF-8
	cache    map[uint32][]byte
	schema   []object
}

// state is what tells whether the owner wrote.
type state struct {
	size    int64
	mtime   time.Time
	inode   string
	counter [4]byte // of the header, which rollback journals count up
	wal     [walHeader]byte
}

// tick is longer than any file system's step of time that is in use on local
// disks: a write in the same step as an earlier one leaves no trace in mtime.
const tick = 20 * time.Millisecond

// Open looks at the database at path. The error is fault.SourceMissing when
// there is none, fault.Locked while a transaction with a rollback journal is
// under way or waits to be rolled back by its owner, fault.Unsupported when the
// file is no database that can be read.
func Open(path string) (*DB, error) {
	f, real, err := safefile.OpenSource(path)
	if err != nil {
		return nil, err
	}
	d := &DB{path: real, main: f, cache: map[uint32][]byte{}}
	if err := d.open(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return d, nil
}

func (d *DB) open() error {
	if err := d.unjournaled(); err != nil {
		return err
	}
	was, header, err := look(d.main)
	if err != nil {
		return err
	}
	if age := time.Since(was.mtime); age >= 0 && age < tick {
		time.Sleep(tick - age)
		if was, header, err = look(d.main); err != nil {
			return err
		}
	}
	d.was = was
	if err := d.header(header); err != nil {
		return err
	}
	if header[19] != 2 {
		return d.read()
	}
	d.wal, err = openWAL(d.path+WAL, d.pageSize)
	if err != nil {
		return err
	}
	if d.wal != nil {
		d.was.wal = d.wal.header
		if err := d.logged(); err != nil {
			return err
		}
	}
	return d.read()
}

// logged takes what the log says of the database: its size, and the head of
// its first page, which may be in the log alone.
func (d *DB) logged() error {
	if d.wal.pages == 0 {
		return nil
	}
	if at, ok := d.wal.frame[1]; ok {
		var h [headerBytes]byte
		if _, err := d.wal.f.ReadAt(h[:], at); err != nil {
			return fmt.Errorf("%w: read the log: %w", ErrChanged, err)
		}
		size := d.pageSize
		if err := d.header(h); err != nil {
			return err
		}
		if d.pageSize != size {
			return damaged("the log has another size of pages")
		}
	}
	d.pages = d.wal.pages
	return nil
}

// look notes how the database file is, and returns the start of it.
func look(f *os.File) (state, [headerBytes]byte, error) {
	var header [headerBytes]byte
	info, err := f.Stat()
	if err != nil {
		return state{}, header, fault.New(fault.Internal, "look at database: %w", err)
	}
	n, err := f.ReadAt(header[:], 0)
	if n < headerBytes {
		return state{}, header, fault.New(fault.Unsupported, "read database header: %w", err)
	}
	s := state{size: info.Size(), mtime: info.ModTime(), counter: [4]byte(header[24:28])}
	s.inode, _ = safefile.Identity(info)
	return s, header, nil
}

func (d *DB) header(h [headerBytes]byte) error {
	if !bytes.HasPrefix(h[:], []byte(Magic)) {
		return fault.New(fault.Unsupported, "not a SQLite database: %s", d.path)
	}
	d.pageSize = int(binary.BigEndian.Uint16(h[16:]))
	if d.pageSize == 1 {
		d.pageSize = 65536
	}
	if d.pageSize < 512 || d.pageSize&(d.pageSize-1) != 0 {
		return fault.New(fault.Unsupported, "database with pages of %d bytes", d.pageSize)
	}
	d.usable = d.pageSize - int(h[20])
	if d.usable < 480 {
		return fault.New(fault.Unsupported, "database with %d usable bytes a page", d.usable)
	}
	if h[19] > 2 {
		return fault.New(fault.Unsupported, "database of a newer file format (%d)", h[19])
	}
	switch binary.BigEndian.Uint32(h[56:]) {
	case 0, 1:
	case 2:
		d.utf16 = binary.LittleEndian
	case 3:
		d.utf16 = binary.BigEndian
	default:
		return fault.New(fault.Unsupported, "database with unknown text encoding")
	}
	d.pages = uint32(min(d.was.size/int64(d.pageSize), 1<<32-2))
	return nil
}

// journalMagic begins a rollback journal that is in use; one that is done with
// is deleted, emptied or begins with zeros.
var journalMagic = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// unjournaled fails while pages of an unfinished transaction may be in the
// database file.
func (d *DB) unjournaled() error {
	f, err := os.Open(d.path + Journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.New(fault.Locked, "look at the journal of the database: %w", err)
	}
	defer f.Close()
	var head [8]byte
	if n, _ := f.ReadAt(head[:], 0); n == len(head) && bytes.Equal(head[:], journalMagic) {
		return fault.New(fault.Locked, "a transaction of the database's owner is not finished").
			WithHint("it is read when the owner has committed, or rolled back at its next start")
	}
	return nil
}

// Check reports whether all that was read is of one state. The error is
// ErrChanged when it may not be.
func (d *DB) Check() error {
	info, err := os.Stat(d.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	now, _, err := look(d.main)
	if err != nil {
		return err
	}
	inode, _ := safefile.Identity(info)
	now.wal = d.was.wal
	if now != d.was || inode != d.was.inode {
		return ErrChanged
	}
	if err := d.unjournaled(); err != nil {
		return ErrChanged
	}
	if d.wal != nil {
		return d.wal.check()
	}
	return nil
}

// Close gives back the files.
func (d *DB) Close() error {
	if d.wal != nil {
		_ = d.wal.f.Close()
	}
	return d.main.Close()
}

// Position says how far the log of a database is read: a later one with the
// same Generation holds all that an earlier one did, and more frames.
type Position struct {
	Generation [walHeader]byte
	Inode      string
	Frames     int64
}

// Position is where this look stands; ok is false without a log that holds a
// commit: an emptied one says nothing of what was in it before.
func (d *DB) Position() (p Position, ok bool) {
	if d.wal == nil || d.wal.frames == 0 {
		return p, false
	}
	return Position{Generation: d.wal.header, Inode: d.was.inode, Frames: d.wal.frames}, true
}

// attempts is how often a look is taken of a database whose owner writes.
const attempts = 6

// View calls read with a look at the database until one is of one state. What
// read does must not last: it may be done several times. The error is that of
// Open or read, or fault.Locked when the owner writes without rest.
func View(path string, read func(*DB) error) error {
	for try := 0; ; try++ {
		err := view(path, read)
		if !errors.Is(err, ErrChanged) {
			return err
		}
		if try == attempts {
			return fault.New(fault.Locked, "read database: %w", err).WithHint("it is read when its owner rests for a moment")
		}
		time.Sleep(tick << try)
	}
}

func view(path string, read func(*DB) error) error {
	d, err := Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	err = read(d)
	// Pages of two states can look like damage; that they changed is then the
	// cause.
	if changed := d.Check(); changed != nil {
		return changed
	}
	return err
}
