package checkpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

const (
	// JobsDir is where work logs are in a state directory, one directory a job.
	JobsDir = "jobs"
	// LogName is a work log: a line for each step, in order.
	LogName = "work.log"

	// maxLine bounds a line of a work log, in bytes.
	maxLine = 128
)

// workLog is an open work log. It is appended to, and cut only behind its last
// whole line.
type workLog struct {
	file *os.File
	path string
	size int64 // up to the last whole line
}

// openLog opens the work log of a job, and makes it if make is set. It stays
// within the state directory whatever links lie there.
func openLog(stateDir, name string, create bool) (*workLog, error) {
	rel := filepath.Join(JobsDir, name, LogName)
	path := filepath.Join(stateDir, rel)
	root, err := os.OpenRoot(stateDir)
	if err != nil {
		return nil, fault.New(fault.Internal, "open the state directory: %w", err)
	}
	defer root.Close()
	flags := os.O_RDWR | os.O_APPEND
	if create {
		if err := root.MkdirAll(filepath.Dir(rel), safefile.DirMode); err != nil {
			return nil, fault.New(fault.Internal, "make the job's directory: %w", err)
		}
		flags |= os.O_CREATE
	}
	// Opening a FIFO would block.
	if info, err := root.Lstat(rel); err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.CorruptCheckpoint, "work log %s is not a regular file", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Internal, "look at work log: %w", err)
	}
	f, err := root.OpenFile(rel, flags, safefile.FileMode)
	if err != nil {
		return nil, err
	}
	l := &workLog{file: f, path: path}
	if create {
		for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path)), stateDir} {
			if err := safefile.SyncDir(dir); err != nil {
				_ = f.Close()
				return nil, fault.New(fault.Internal, "make the job's directory durable: %w", err)
			}
		}
	}
	return l, nil
}

func (l *workLog) close() { _ = l.file.Close() }

// scan reads the whole lines: how many there are, and those after the first
// skip. A line that is not its step, in its place, is an error. What follows
// the last whole line was being written when its writer ended; l.size leaves
// it out.
func (l *workLog) scan(skip int64) (lines int64, beyond []step, err error) {
	if _, err := l.file.Seek(0, io.SeekStart); err != nil {
		return 0, nil, err
	}
	l.size = 0
	r := bufio.NewReaderSize(l.file, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return lines, beyond, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return lines, beyond, err
		}
		s, ok := parseLine(line)
		if !ok || s.Seq != lines+1 {
			return lines, beyond, fault.New(fault.CorruptCheckpoint, "work log %s: line %d is not step %d", l.path, lines+1, lines+1).
				WithHint("nothing was changed; to start over, move it and its checkpoint away")
		}
		lines++
		l.size += int64(len(line))
		if lines > skip {
			beyond = append(beyond, s)
		}
	}
}

func logLine(s step) []byte {
	return []byte("step " + strconv.FormatInt(s.Seq, 10) + " at " + s.TS + "\n")
}

// parseLine reads what logLine wrote.
func parseLine(line []byte) (step, bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte("step "))
	number, ts, split := bytes.Cut(rest, []byte(" at "))
	if !ok || !split || len(line) > maxLine || len(ts) == 0 {
		return step{}, false
	}
	seq, err := strconv.ParseInt(string(number), 10, 64)
	s := step{seq, string(ts)}
	return s, err == nil && bytes.Equal(logLine(s), line)
}

// mend cuts what follows the last whole line.
func (l *workLog) mend() error {
	info, err := l.file.Stat()
	if err == nil && info.Size() > l.size {
		if err = safefile.Truncate(l.file, l.size); err == nil {
			err = l.file.Sync()
		}
	}
	if err != nil {
		return fault.New(fault.Internal, "cut the torn line of a work log: %w", err)
	}
	return nil
}

// append adds a step, durably. After an error the file may end in a part of it,
// which the next mend cuts.
func (l *workLog) append(s step) error {
	_, err := safefile.Write(l.file, logLine(s))
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fault.New(fault.Internal, "append to the work log: %w", err)
	}
	return nil
}

// countLines counts the whole lines of a work log that nobody is kept from
// appending to; 0 if there is none.
func countLines(path string) (int64, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		return 0, fmt.Errorf("read the work log: %w", err)
	}
	defer f.Close()
	var n int64
	buf := make([]byte, 64<<10)
	for {
		k, err := f.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte("\n")))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("read the work log: %w", err)
		}
	}
}
