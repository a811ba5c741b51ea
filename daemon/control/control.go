// Package control is the wire between client and daemon as values: routes,
// requests, answers, the problem document and the version. It is a leaf, so
// that a client needs nothing of the server; it opens no connection and knows
// no verb's work.
package control

// Host is the host name that requests carry; HostAlias is the one that lets
// curl be used without a header.
const (
	Host      = "handoffd"
	HostAlias = "localhost"
)

// Prefix is what every route but metrics begins with.
const Prefix = "/v1/"

// MetricsPath is where Prometheus looks.
const MetricsPath = "/metrics"

// LockSuffix makes the name of the lock that goes with a socket.
const LockSuffix = ".lock"

// MaxBody bounds a request body.
const MaxBody = 1 << 20

// Headers.
const (
	// VersionHeader is in every answer.
	VersionHeader = "Handoffd-Version"
	// StoreHeader in a request is the store that the client means, query
	// escaped. A daemon of another store answers 421 and does nothing.
	StoreHeader = "Handoffd-Store"
	// ContentProblem is the media type of a Problem.
	ContentProblem = "application/problem+json"
	// ContentStream is that of /v1/events.
	ContentStream = "application/x-ndjson"
	// ContentRaw asks show for a file's bytes instead of a JSON document.
	ContentRaw = "application/octet-stream"
	// ContentJSON is that of every other answer.
	ContentJSON = "application/json"
)

// The verbs, as they stand in a path after Prefix.
const (
	Build   = "build"
	Auto    = "auto"
	List    = "list"
	Show    = "show"
	Verify  = "verify"
	Config  = "config"
	Index   = "index"
	Rename  = "rename"
	Retitle = "retitle"
	// The evidence contract has two verbs.
	ContractSet  = "contract/set"
	ContractShow = "contract/show"
	VerifyGate   = "verify-gate"
	Promote      = "promote"
	Merge        = "merge"
	Federate     = "federated-merge"
	Dispatch     = "dispatch"
	Improve      = "self-improve"

	Status  = "status"
	Events  = "events"
	Poke    = "poke"
	Reload  = "reload"
	Stop    = "stop"
	Version = "version"
)

// Get lists the verbs that are asked for with GET. They change nothing.
var Get = map[string]bool{Status: true, Events: true, Version: true}
