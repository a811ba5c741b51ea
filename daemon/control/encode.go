package control

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode is the one encoder of answers, events and problems. Names of files
// and texts of errors come from outside and need not be UTF-8, which JSON
// cannot carry: what is not becomes U+FFFD, so that one bad name does not take
// the answer about all others away.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false), jsontext.AllowInvalidUTF8(true))
}
