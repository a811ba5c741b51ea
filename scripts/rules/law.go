// Package rules holds the source tree to its law: which folders there are, who
// may import whom, and what no file may contain. The law is the tables of this
// file; the tests of the package apply it to the tree that they stand in, so
// they must not be answered from the test cache:
//
//	go test -count=1 ./scripts/rules
//
// It judges source text alone. It never builds, runs or changes anything.
package rules

// room is one folder and what its packages may import of ours. A room covers
// the folders below it, unless one of them is a room itself. Packages may always
// import within their own room.
type room struct {
	folder string
	// may lists folders: "x" is the package in x, "x/..." also those below.
	may    []string
	reason string
}

// anyFormat stands for each package directly below engine/harness that is not
// a room itself. Each is its own room.
const anyFormat = "engine/harness/*"

// values are the engine's leaves and what is a value over them.
var values = []string{"engine/fault", "engine/seal", "engine/sanitize", "engine/turn", "engine/session"}

// law is the whole import law. A package below no room breaks it.
//
// The exemptions, and there are no others:
//   - An external test package (package x_test) of the engine or of policy may
//     import any package below engine/, to test a stage against later ones and
//     against every format.
//   - A test file inside a format's own package may import
//     engine/harness/harnesstest.
var law = []room{
	{"cmd", []string{"daemon/...", "policy/...", "engine/...", "configs/..."}, "a main parses, builds, runs and exits; what it runs is below it"},
	{"daemon", []string{"watch/...", "policy/...", "engine/...", "configs/...", "deploy/..."}, "the daemon wires everything and is imported by mains only"},
	{"daemon/control", []string{"engine/fault"}, "the wire types are a leaf, so that a client needs nothing of the server"},
	{"daemon/schedule", []string{"engine/fault"}, "the schedule knows keys and clocks, so that it can be tested without an engine"},
	{"watch", nil, "a watcher gives hints and must not know what they are used for"},
	{"policy", below("engine/safefile", "engine/store", "engine/render", "engine/redact"), "policy decides over what is stored; it neither builds nor runs verbs"},
	{"configs", []string{"engine/fault"}, "a configuration is values; whoever reads it must not pull in the engine"},
	{"deploy", nil, "unit files and snippets are data"},
	{"scripts", nil, "scripts test the product from outside"},

	{"engine/fault", nil, "leaf"},
	{"engine/seal", nil, "leaf"},
	{"engine/sanitize", nil, "leaf"},
	{"engine/turn", nil, "leaf"},
	{"engine/redact", nil, "leaf"},
	{"engine/session", []string{"engine/turn", "engine/fault", "engine/seal"}, "a session is values over turns and seals"},
	{"engine/safefile", []string{"engine/fault"}, "how a file is written does not depend on what is in it"},
	{"engine/sqlite", []string{"engine/fault", "engine/safefile"}, "a reader of a file format knows nothing of who keeps what in it"},
	{"engine/harness", below("engine/safefile"), "the format contract comes before the store"},
	{"engine/harness/plain", nil, "leaf: what formats share about the text of records"},
	{"engine/harness/ledger", below("engine/safefile", "engine/harness", "engine/harness/plain", "engine/sqlite"), "what formats share that are rows of a database"},
	{"engine/harness/journal", below("engine/harness", "engine/harness/plain"), "what formats share that are logs of JSON lines"},
	{anyFormat, below("engine/harness", "engine/harness/plain", "engine/harness/journal", "engine/harness/ledger", "engine/sqlite"), "formats are strangers to one another and to the store"},
	{"engine/harness/harnesstest", below("engine/safefile", "engine/harness"), "the conformance suite knows the contract, not the formats"},
	{"engine/harness/all", below("engine/harness", "engine/harness/..."), "the one list of formats"},
	{"engine/store", []string{"engine/fault", "engine/seal", "engine/safefile", "engine/turn", "engine/session"}, "the store keeps turns, whatever format they had"},
	{"engine/ingest", below("engine/safefile", "engine/sqlite", "engine/harness", "engine/harness/all", "engine/store"), "ingest is the first stage that knows formats and store"},
	{"engine/render", below(), "render is pure: turns in, bytes out"},
	{"engine/index", below("engine/safefile", "engine/store"), "the index is rebuilt from the store alone"},
	{"engine/pipeline", below("engine/safefile", "engine/harness", "engine/harness/all", "engine/store", "engine/ingest", "engine/render", "engine/index"), "the pipeline is the only one that joins the stages"},
	{"engine/verify", below("engine/safefile", "engine/store", "engine/render"), "a checker must not share code with what wrote the files"},
	{"engine/federate", below("engine/safefile", "engine/store", "engine/render"), "another store is read as anyone's, before it is known to be a store"},
	{"engine/verb", below("engine/redact", "engine/federate", "engine/safefile", "engine/harness", "engine/harness/all", "engine/store", "engine/ingest", "engine/render", "engine/index", "engine/pipeline", "engine/verify"), "verbs are the last stage"},
}

// below returns the engine's values and more.
func below(more ...string) []string { return append(append([]string{}, values...), more...) }

// ban is an import that packages of a folder must not have, in files that are
// not tests.
type ban struct {
	folder string // covers the folders below
	path   string // import path; "x/..." also bans what is below
	reason string
}

// conformance is the suite that the formats' tests share. It is test code
// outside of test files, so the bans are not for it.
const conformance = "engine/harness/harnesstest"

const pure = "the package is pure: values in, values out"

var bans = []ban{
	{"engine", "net", "the engine makes no network call"},
	{"engine", "net/http/...", "the engine makes no network call"},
	{"engine", "net/rpc/...", "the engine makes no network call"},
	{"engine", "log/...", "the engine returns errors; who called it logs them once"},
	{"engine", "flag", "the engine is handed values; mains parse"},
	{"engine/render", "os/...", pure},
	{"engine/render", "io/fs", pure},
	{"engine/render", "net/...", pure},
	{"engine/turn", "os/...", pure},
	{"engine/turn", "io/fs", pure},
	{"engine/session", "os/...", pure},
	{"engine/session", "io/fs", pure},
	{"engine/seal", "os/...", pure},
	{"engine/seal", "io/fs", pure},
	{"engine/sanitize", "os/...", pure},
	{"engine/sanitize", "io/fs", pure},
}

// unlinked are packages that no binary may hold, however it came to them.
var unlinked = []ban{
	{"cmd", "github.com/santhosh-tekuri/jsonschema/...", "its initialisation compiles every meta-schema in each process, which is more than a hook call may cost; it is for tests"},
	{"cmd", "testing/...", "something for tests is imported by the product"},
	{"cmd", "modernc.org/sqlite/...", "it more than doubles the start of each process; it is for tests, which check our reader against it"},
	{"cmd", "pgregory.net/rapid", "something for tests is imported by the product"},
}

// topLevel is everything that may stand at the top, besides dotfiles.
var topLevel = map[string]string{
	"cmd": "mains", "daemon": "wiring", "watch": "events", "engine": "stages", "policy": "decisions",
	"configs": "defaults and schemas", "deploy": "unit files", "scripts": "tests of the tree, benchmarks, release",
	"go.mod": "", "go.sum": "", "README.md": "", "LICENSE": "", "CHANGELOG.md": "",
}

const (
	// fileLines is the length at which a file is two things.
	fileLines = 500
	// packageFiles is the number of files at which a package is two things.
	packageFiles = 12
)
