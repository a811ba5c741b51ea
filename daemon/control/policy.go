package control

// The verbs of the permission gateway. They are never done by a daemon.
const (
	RuntimeEvaluate = "runtime/evaluate"
	RuntimeRun      = "runtime/run"
	RuntimePolicy   = "runtime/policy"
	RuntimeJob      = "runtime/job"
	RuntimeResume   = "runtime/resume"
	RuntimeStatus   = "runtime/status"
)

// EvaluateRequest asks for a decision. Paths may be relative: to the workspace,
// and Policy to the working directory first.
type EvaluateRequest struct {
	Policy string `json:"policy,omitempty"`
	Risk   string `json:"risk,omitempty"`
	Target string `json:"target,omitempty"`
}

// RunRequest asks to do something if the decision allows it.
type RunRequest struct {
	Policy string `json:"policy,omitempty"`
	Risk   string `json:"risk,omitempty"`
	Op     string `json:"op,omitempty"` // read or spawn
	Target string `json:"target,omitempty"`
	Args   string `json:"args,omitempty"` // a command line, with quotes
}

// PolicyRequest asks for the policy that rules.
type PolicyRequest struct {
	Policy string `json:"policy,omitempty"`
}

// JobRequest begins a job of numbered steps, or with RuntimeResume goes on with
// one.
type JobRequest struct {
	Policy  string `json:"policy,omitempty"`
	Session string `json:"session,omitempty"`
	Steps   int64  `json:"steps,omitzero"`
	FailAt  int64  `json:"fail_at,omitzero"` // the step to be killed before
}

// JobStatusRequest asks for what the disk says of a job.
type JobStatusRequest struct {
	Policy  string `json:"policy,omitempty"`
	Session string `json:"session,omitempty"`
}

// Decision has the reference's members.
type Decision struct {
	Verdict        string  `json:"verdict"`
	Reason         string  `json:"reason"`
	Risk           string  `json:"risk"`
	Level          *string `json:"level"`          // null for an unknown risk
	Classification *string `json:"classification"` // null where nothing was classified
}

// NotAllowed is a decision on which nothing was done.
type NotAllowed struct {
	Decision
	Executed bool   `json:"executed"` // always false
	Record   string `json:"record"`
}

// NotExecuted was allowed, and could not be done.
type NotExecuted struct {
	Executed bool   `json:"executed"` // always false
	Error    string `json:"error"`
	Record   string `json:"record"`
}

// ReadAnswer is what reading came to.
type ReadAnswer struct {
	Executed bool   `json:"executed"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"content_sha256"`
	Record   string `json:"record"`
}

// SpawnAnswer is how a child ended. The client ends with ExitCode, or with 1 if
// there is none.
type SpawnAnswer struct {
	Executed bool    `json:"executed"`
	ExitCode *int    `json:"exit_code"`
	Signal   *string `json:"signal"`
	TimedOut bool    `json:"timed_out,omitzero"`
	Record   string  `json:"record"`
}

// JobAnswer is a job that is done.
type JobAnswer struct {
	Session   string `json:"session"`
	Completed bool   `json:"completed"`
	Steps     int64  `json:"steps"`
	Seq       int64  `json:"seq"`
	WorkLog   string `json:"work_log"`
}

// KilledAnswer is a job that was killed on request. The client ends with
// ExitKilled.
type KilledAnswer struct {
	Session  string `json:"session"`
	KilledAt int64  `json:"killed_at_step"`
	Seq      int64  `json:"checkpoint_seq"`
	Note     string `json:"note"`
}

// ExitKilled is what a shell reports of a program that SIGKILL ended.
const ExitKilled = 137

// AlreadyAnswer is a job that had been done before.
type AlreadyAnswer struct {
	Session string `json:"session"`
	Already bool   `json:"already_completed"`
	Seq     int64  `json:"seq"`
	Total   int64  `json:"steps_total"`
}

// JobStatusAnswer is what the disk says of a job.
type JobStatusAnswer struct {
	Session   string `json:"session"`
	Seq       int64  `json:"seq"`
	Total     *int64 `json:"steps_total"` // null when the checkpoint does not say
	Completed bool   `json:"completed"`
	LogLines  int64  `json:"work_log_lines"`
}
