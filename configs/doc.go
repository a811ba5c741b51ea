// Package configs turns configuration files and the environment into plain
// values, each with the place it comes from. There are two files:
// handoff.config.json belongs to a project and says where handoffs are stored
// and what goes into them (Resolve); handoffd.json belongs to the user and says
// what the daemon watches (LoadDaemon). The JSON Schemas beside the code are
// their authority, and a sample of each shows every key.
//
// The package reads and never writes or creates anything, never reads the
// process's own environment (it is handed a function), and never lets an
// invalid file fall through to a default: a file that is there and wrong is a
// fault.Config that names everything wrong with it. A key is honoured or
// refused, never ignored.
package configs

import (
	_ "embed" // the two schemas
	"sync"

	"handoffd/configs/document"
)

const (
	// StoreFile is the name of a project's configuration.
	StoreFile = "handoff.config.json"
	// StoreSchemaFile is the name of its schema.
	StoreSchemaFile = "handoff.config.schema.json"
	// DaemonFile is the name of the daemon's configuration.
	DaemonFile = "handoffd.json"
	// DaemonSchemaFile is the name of its schema.
	DaemonSchemaFile = "handoffd.schema.json"
)

//go:embed handoff.config.schema.json
var storeSchemaText []byte

//go:embed handoffd.schema.json
var daemonSchemaText []byte

// The schemas are compiled when the first file is found: most processes, hooks
// above all, run where there is none.
var (
	storeSchema  = sync.OnceValue(func() *document.Schema { return mustCompile(storeSchemaText) })
	daemonSchema = sync.OnceValue(func() *document.Schema { return mustCompile(daemonSchemaText) })
)

func mustCompile(text []byte) *document.Schema {
	s, err := document.Compile(text)
	if err != nil {
		panic("embedded configuration schema: " + err.Error()) // the tests compile both
	}
	return s
}

// StoreSchema returns the JSON Schema of handoff.config.json.
func StoreSchema() string { return string(storeSchemaText) }

// DaemonSchema returns the JSON Schema of handoffd.json.
func DaemonSchema() string { return string(daemonSchemaText) }
