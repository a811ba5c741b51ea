package store

import (
	"encoding/binary"
	"path/filepath"

	"handoffd/engine/safefile"
	"handoffd/engine/session"
)

// Journal is the append-only files of one session, grown together. It is used
// under the session lock.
type Journal struct {
	files [5]*appender
	dir   string
}

// The order of Journal.files.
const (
	timeline = iota
	tools
	keys
	quarantineList
	quarantineRaw
)

var journalNames = [...]string{TimelineName, ToolsName, KeysName, QuarantineList, QuarantineRaw}

// Marks are the decided lengths of a journal's files, by position.
type Marks [len(journalNames)]Mark

// OpenJournal opens the files in dir at the given marks. What lies behind the
// committed bytes is dropped when the file is next written. A damaged file is
// fault.Integrity.
func OpenJournal(dir string, marks Marks, m *session.Manifest) (*Journal, error) {
	j := &Journal{dir: dir}
	for i, name := range journalNames {
		committed, _ := m.Artifact(name)
		a, err := openAppender(dir, name, marks[i], committed)
		if err != nil {
			return nil, err
		}
		j.files[i] = a
	}
	return j, nil
}

// Intact reports whether every file is as committed.
func (j *Journal) Intact() bool {
	for _, a := range j.files {
		if !a.intact() {
			return false
		}
	}
	return true
}

// Turn appends one timeline line and its key.
func (j *Journal) Turn(line []byte, k Key) error {
	if _, err := j.files[timeline].Write(line); err != nil {
		return err
	}
	return j.Keys([]Key{k})
}

// Keys appends keys alone, for turns whose lines are there already.
func (j *Journal) Keys(list []Key) error {
	buf := make([]byte, 0, 8*len(list))
	for _, k := range list {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(k))
	}
	_, err := j.files[keys].Write(buf)
	return err
}

// Tool appends an entry of TOOLS.md.
func (j *Journal) Tool(entry []byte) error {
	_, err := j.files[tools].Write(entry)
	return err
}

// ToolBytes is the length of TOOLS.md so far.
func (j *Journal) ToolBytes() int64 { return j.files[tools].size }

// Quarantine appends raw bytes and returns where they start.
func (j *Journal) Quarantine(raw []byte) (at int64, err error) {
	at = j.files[quarantineRaw].size
	_, err = j.files[quarantineRaw].Write(raw)
	return at, err
}

// QuarantineLost reports whether the list of what is in quarantine starts
// again, so that what is on disk is not to be trusted.
func (j *Journal) QuarantineLost() bool { return j.files[quarantineList].mark.Bytes == 0 }

// QuarantineEntry appends a line to the list of what is in quarantine.
func (j *Journal) QuarantineEntry(line []byte) error {
	_, err := j.files[quarantineList].Write(line)
	return err
}

// Settle marks everything written so far as decided.
func (j *Journal) Settle() {
	for _, a := range j.files {
		a.settle()
	}
}

// Finish hands the files to the group that commits the build and returns what
// is then committed and decided.
func (j *Journal) Finish(g *safefile.Group) (committed []session.Artifact, marks Marks, err error) {
	for i, a := range j.files {
		created := a.committed.Bytes == 0 && a.size > 0
		if err := a.finish(g); err != nil {
			return nil, marks, err
		}
		if created {
			g.SyncDir(filepath.Dir(a.path()))
		}
		marks[i] = a.mark
		if a.committed.Bytes > 0 {
			committed = append(committed, a.committed)
		}
	}
	return committed, marks, nil
}

// Discard drops what was not finished.
func (j *Journal) Discard() {
	for _, a := range j.files {
		if a != nil {
			a.discard()
		}
	}
}
