package pressure

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"handoffd/engine/session"
)

//go:embed windows.json
var windowsFile []byte

// known is one row of the data file: models and the size of their window.
type known struct {
	Prefix   string  `json:"prefix"`
	Contains string  `json:"contains"`
	Tokens   int64   `json:"tokens"`
	Larger   []int64 `json:"larger"` // variants that the model's name does not tell
	Source   string  `json:"source"`
}

var windows = sync.OnceValue(func() []known {
	var file struct {
		Windows []known `json:"windows"`
	}
	if err := json.Unmarshal(windowsFile, &file); err != nil {
		panic("pressure: windows.json: " + err.Error())
	}
	return file.Windows
})

// Where the size of a window is known from.
const (
	FromHarness = "harness"
	FromTable   = "table"
)

// Window returns the size of a session's context window in tokens and where
// it is known from: what the harness reports, else what is known of the model.
// A session that holds more than the model's window has a larger variant of
// it; size is 0 when nobody knows.
func Window(t session.Tokens, model string) (size int64, from string) {
	if t.Window > 0 {
		return t.Window, FromHarness
	}
	name := strings.ToLower(model)
	// Gateways put their own name before the model's.
	if i := strings.LastIndexAny(name, "/"); i >= 0 {
		name = name[i+1:]
	}
	for _, dot := range []string{"anthropic."} {
		if i := strings.Index(name, dot); i >= 0 {
			name = name[i+len(dot):]
		}
	}
	for _, k := range windows() {
		if k.Contains != "" && !strings.Contains(name, k.Contains) || k.Prefix != "" && !strings.HasPrefix(name, k.Prefix) {
			continue
		}
		for _, size := range append([]int64{k.Tokens}, k.Larger...) {
			if t.Context <= size {
				return size, FromTable
			}
		}
		return 0, ""
	}
	return 0, ""
}

// Measure returns the observation of a session: how full its window is at its
// last turn, in percent. Without a window or a fill there is no signal, which
// is never a full one. A harness that reports more than its own window is at
// 100.
func Measure(t session.Tokens, model string) (o Observation, window int64, from string) {
	window, from = Window(t, model)
	if window <= 0 || t.Context <= 0 {
		return o, window, from
	}
	pct := min(100, float64(t.Context)*100/float64(window))
	o.Pct = &pct
	return o, window, from
}
