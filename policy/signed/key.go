// Package signed is the documents that the holder of the project's key makes:
// who goes on with whose work, and a deny that is lifted once. It reads,
// verifies and writes them; what cannot be verified is as if it were not
// there. It never keeps a key and never hands one on.
package signed

import (
	"bytes"
	"os"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

// KeyEnv is the environment variable of the key.
const KeyEnv = "ADLC_MANIFEST_KEY"

const maxKey = 4 << 10

// ReadKey returns the key: that of a file, if one is named, else the
// environment's. There may be none. It is the bytes as they stand, without a
// newline at the end of the file. The error is fault.Operational: a file that
// others can read holds no secret.
func ReadKey(environment, file string) ([]byte, error) {
	if file == "" {
		return []byte(environment), nil
	}
	raw, err := safefile.ReadSmall(file, maxKey)
	if err != nil {
		return nil, fault.New(fault.Operational, "the key file cannot be read: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fault.New(fault.Operational, "the key file cannot be read: %w", err)
	}
	if private && info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Operational, "the key file %s can be read by others", file).WithHint("chmod 600 %s", file)
	}
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(raw) == 0 {
		return nil, fault.New(fault.Operational, "the key file %s is empty", file)
	}
	return raw, nil
}
