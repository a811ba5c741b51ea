package seal_test

import (
	"bytes"
	"testing"

	"handoffd/engine/seal"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":[{"d":1,"c":2}],"a":null}`:  `{"a":null,"b":[{"c":2,"d":1}]}`,
		`{"\ud83d\ude00":1,"\uffee":2}`:   `{"😀":1,"` + "\uffee" + `":2}`, // by UTF-16, not by code point
		`{"sig":"x","a":{"sig":"stays"}}`: `{"a":{"sig":"stays"}}`,
		` [ 1.50 , "<&>" , true ] `:       `[1.5,"<&>",true]`,
		`"x"`:                             `"x"`,
		`{"10":1,"9":2}`:                  `{"10":1,"9":2}`,
	} {
		got, err := seal.Canonical([]byte(in), "sig")
		if err != nil || string(got) != want {
			t.Errorf("%s gives %s (%v), want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{``, `{`, `{"a":1,"a":2}`, `{} {}`, `[1,]`} {
		if got, err := seal.Canonical([]byte(bad)); err == nil {
			t.Errorf("%q accepted as %s", bad, got)
		}
	}
}

func TestSigned(t *testing.T) {
	key, msg := []byte("k"), []byte("m")
	sig := seal.Sign(key, msg)
	for name, ok := range map[string]bool{
		"right":     seal.Signed(key, msg, sig),
		"no key":    !seal.Signed(nil, msg, seal.Sign(nil, msg)),
		"no sig":    !seal.Signed(key, msg, ""),
		"short":     !seal.Signed(key, msg, sig[:63]),
		"upper":     !seal.Signed(key, msg, string(bytes.ToUpper([]byte(sig)))),
		"other key": !seal.Signed([]byte("l"), msg, sig),
	} {
		if !ok {
			t.Error(name)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":{"d":[1,{"z":0,"y":1}]},"a":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := seal.Canonical(raw)
		if err != nil {
			return
		}
		twice, err := seal.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable: %q %q %v", once, twice, err)
		}
	})
}
