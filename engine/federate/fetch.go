package federate

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// Scheme begins a root on another machine: ssh://[user@]host[:port]/path, or
// with /~/ for a path from the home directory there.
const Scheme = "ssh://"

// Fetcher runs the user's own programs for reaching another machine.
type Fetcher interface {
	Connect(host string) error
	Look(name string) (string, error)
	// Stream runs a program and hands on what it prints.
	Stream(ctx context.Context, argv []string, w io.Writer) (exit int, stderr []byte, err error)
}

// Fetched is a copy of a store of another machine.
type Fetched struct{ Dir string }

// Remove deletes the copy.
func (f Fetched) Remove() { _ = os.RemoveAll(f.Dir) }

// remote is a root on another machine.
type remote struct {
	host string // with the user, as ssh takes it
	name string // the host alone
	port string
	path string
}

var (
	safeHost = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$|^\[[0-9A-Fa-f:.]+\]$`)
	safeUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
)

func parseRemote(root string) (remote, error) {
	u, err := url.Parse(root)
	if err != nil {
		return remote{}, fault.New(fault.Usage, "%s is no address: %w", root, err)
	}
	r := remote{name: u.Hostname(), port: u.Port(), path: u.Path}
	host := strings.TrimSuffix(u.Host, ":"+r.port)
	r.host = strings.Trim(host, "[]")
	if _, password := u.User.Password(); password || u.RawQuery != "" || u.Fragment != "" || !safeHost.MatchString(host) {
		return r, fault.New(fault.Usage, "%s is not of the form ssh://[user@]host[:port]/path", u.Redacted())
	}
	if name := u.User.Username(); name != "" {
		if !safeUser.MatchString(name) {
			return r, fault.New(fault.Usage, "%s names no user", root)
		}
		r.host = name + "@" + r.host
	}
	if rest, ok := strings.CutPrefix(r.path, "/~/"); ok {
		r.path = rest
	}
	if r.path == "" || r.path == "/" || strings.HasPrefix(r.path, "-") || strings.ContainsAny(r.path, "\x00\r\n") {
		return r, fault.New(fault.Usage, "%s names no directory", root)
	}
	return r, nil
}

// wanted are the files of a session that an import reads.
var wanted = map[string]int64{store.ManifestName: maxManifest, store.TimelineName: maxTimeline, store.BriefName: maxBrief}

// Fetch copies what an import reads of a store on another machine into a
// private directory, over the user's own ssh: with rsync where both machines
// have it, else as an archive.
func Fetch(ctx context.Context, root string, f Fetcher) (Fetched, error) {
	r, err := parseRemote(root)
	if err != nil {
		return Fetched{}, err
	}
	if err := f.Connect(r.name); err != nil {
		return Fetched{}, err
	}
	ssh, err := f.Look("ssh")
	if err != nil {
		return Fetched{}, fmt.Errorf("reach %s: %w", r.name, err)
	}
	dir, err := os.MkdirTemp("", "handoff-federate-")
	if err != nil {
		return Fetched{}, fault.New(fault.Internal, "make a place for the copy: %w", err)
	}
	got := Fetched{dir}
	if rsync, lookErr := f.Look("rsync"); lookErr == nil {
		if err = r.rsync(ctx, f, rsync, ssh, dir); err == nil {
			return got, nil
		}
		if ctx.Err() != nil {
			got.Remove()
			return Fetched{}, ctx.Err()
		}
		if clearErr := clear(dir); clearErr != nil {
			return got, clearErr
		}
	}
	if err = r.archive(ctx, f, ssh, dir); err != nil {
		got.Remove()
		return Fetched{}, fault.New(fault.Unreachable, "fetch from %s: %w", r.name, err)
	}
	return got, nil
}

func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

func (r remote) shell(ssh string) []string {
	argv := []string{ssh, "-T", "-o", "ConnectTimeout=20"}
	if r.port != "" {
		argv = append(argv, "-p", r.port)
	}
	return argv
}

func (r remote) rsync(ctx context.Context, f Fetcher, rsync, ssh, dir string) error {
	shell := r.shell(ssh)
	for i, s := range shell {
		if strings.ContainsAny(s, " '\"\\") {
			shell[i] = "'" + strings.ReplaceAll(s, "'", "''") + "'" // as rsync splits it
		}
	}
	argv := []string{rsync, "--recursive", "--times", "-s", "--no-links", "--no-devices", "--no-specials", "--chmod=D700,F600", fmt.Sprintf("--max-size=%d", int64(maxTimeline)), "--include=*/"}
	for name := range wanted {
		argv = append(argv, "--include=/*/*/"+name)
	}
	host := r.host
	if strings.Contains(r.name, ":") {
		host = strings.Replace(host, r.name, "["+r.name+"]", 1)
	}
	argv = append(argv, "--exclude=*", "--prune-empty-dirs", "--rsh="+strings.Join(shell, " "), "--",
		host+":"+strings.TrimRight(r.path, "/")+"/"+store.ProjectsDir+"/", filepath.Join(dir, store.ProjectsDir)+"/")
	if err := safefile.MakeDir(filepath.Join(dir, store.ProjectsDir)); err != nil {
		return err
	}
	exit, stderr, err := f.Stream(ctx, argv, io.Discard)
	return failed("rsync", exit, stderr, err)
}

// archive has the other machine pack its sessions, and unpacks what is wanted.
func (r remote) archive(ctx context.Context, f Fetcher, ssh, dir string) error {
	argv := append(r.shell(ssh), "--", r.host, "tar -C "+quoted(r.path)+" -cf - "+store.ProjectsDir)
	read, write := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(read, dir)
		// What follows the end of the archive is drained, so that the other
		// side can end; after an error it is told.
		if err == nil {
			_, err = io.Copy(io.Discard, read)
		}
		_ = read.CloseWithError(err)
		unpacked <- err
	}()
	exit, stderr, err := f.Stream(ctx, argv, write)
	_ = write.Close()
	if unpackErr := <-unpacked; unpackErr != nil && err == nil && exit == 0 {
		return unpackErr
	}
	return failed("ssh", exit, stderr, err)
}

// quoted is text as one word for a shell.
func quoted(s string) string {
	if !strings.HasPrefix(s, "/") {
		s = "./" + s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func failed(program string, exit int, stderr []byte, err error) error {
	if err != nil {
		return err
	}
	if exit == 0 {
		return nil
	}
	said := strings.TrimSpace(string(stderr))
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	return fault.New(fault.Unreachable, "%s ended with status %d: %s", program, exit, bounded(said))
}

// unpack takes the wanted files out of an archive. Names in it are another
// machine's: only those of the one form count, and nothing is opened but below
// dir.
func unpack(r io.Reader, dir string) error {
	into, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer into.Close()
	files := 0
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		parts := strings.Split(strings.TrimPrefix(h.Name, "./"), "/")
		limit, ok := int64(0), false
		if len(parts) == 4 && parts[0] == store.ProjectsDir {
			limit, ok = wanted[parts[3]]
		}
		if !ok || h.Typeflag != tar.TypeReg || !plainName(parts[1]) || !plainName(parts[2]) {
			continue
		}
		if files++; files > 3*maxSessions {
			return fault.New(fault.Integrity, "more than %d files", 3*maxSessions)
		}
		if h.Size > limit {
			continue // the session is then found to be without it
		}
		if err := take(into, filepath.Join(parts...), archive); err != nil {
			return err
		}
	}
}

func plainName(s string) bool {
	return s != "" && s[0] != '.' && filepath.IsLocal(s) && !strings.ContainsAny(s, "/\\\x00")
}

func take(into *os.Root, name string, r io.Reader) error {
	at := ""
	for _, part := range strings.Split(filepath.Dir(name), string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if err := into.Mkdir(at, safefile.DirMode); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	f, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, safefile.FileMode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		_ = f.Close()
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	return f.Close()
}
