package redact_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/redact"
)

// The credentials are made up here, in pieces, so that no scanner takes this
// file for a leak.
var (
	jwt    = "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiIxMjM0NTYifQ" + "." + "c2lnbmF0dXJl"
	pem    = "-----BEGIN " + "PRIVATE KEY-----"
	pemEnd = "-----END " + "PRIVATE KEY-----"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "fix the cart", "fix the cart"},
		{"key block", "a\n" + pem + "\nMIIEvQIBADANBg\n" + pemEnd + "\nb", "a\n[adlc: redacted private key block]\nb"},
		{"lone header", "a " + pem + " b", "a [adlc: redacted private key block] b"},
		{"no end", pem + "\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nAASCBKcwggSjAgEAAoIBAQ==\nand then words", "[adlc: redacted private key block]\nand then words"},
		{"no end, in JSON", `{"k":"` + pem + `\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nAASCBKcwggSj"}`, `{"k":"[adlc: redacted private key block]"}`},
		{"jwt", "t " + jwt + " u", "t [adlc: redacted JWT] u"},
		{"aws", "AKIA" + "ABCDEFGHIJKLMNOP", "[adlc: redacted AWS access key id]"},
		{"aws temporary", "ASIA" + "ABCDEFGHIJKLMNOP", "[adlc: redacted AWS temporary access key id]"},
		{"github", "ghp_" + strings.Repeat("a1", 12), "[adlc: redacted GitHub token]"},
		{"github fine", "github_pat_" + strings.Repeat("a1", 12), "[adlc: redacted GitHub fine-grained token]"},
		{"gitlab", "glpat-" + strings.Repeat("a1", 12), "[adlc: redacted GitLab token]"},
		{"api", "sk-" + "ant-" + strings.Repeat("a1", 12), "[adlc: redacted API key]"},
		{"slack", "xoxb-" + "1234567890ab", "[adlc: redacted Slack token]"},
		{"google", "AIza" + strings.Repeat("A", 35), "[adlc: redacted Google API key]"},
		{"url", "postgres://u:p4ssw0rd@h/db", "postgres://u:[adlc: redacted URL password]@h/db"},
		{"url without user", "redis://:p4ssw0rd@h", "redis://:[adlc: redacted URL password]@h"},
		{"url without password", "https://host:8080/a@b", "https://host:8080/a@b"},
		{"bearer", "authorization: bearer " + strings.Repeat("x", 20), "authorization: bearer [adlc: redacted bearer token]"},
		{"bare", "api_key=abcdefgh next", "api_key=[adlc: redacted credential] next"},
		{"quoted", `password: "two words"`, `password: "[adlc: redacted credential]"`},
		{"json", `{"password":"hunter2hunter2","n":1}`, `{"password":"[adlc: redacted credential]","n":1}`},
		{"json in json", `{"a":"{\"password\":\"hunter2hunter2\"}"}`, `{"a":"{\"password\":\"[adlc: redacted credential]\"}"}`},
		{"short", "token: abc", "token: abc"},
		{"entropy", "see (q7Xz9LmPv2RtYw4NbKc8JhGf5DsAe1Uo3).", "see ([adlc: redacted high-entropy token])."},
		{"hash", strings.Repeat("0123456789abcdef", 4), strings.Repeat("0123456789abcdef", 4)},
		{"long word", strings.Repeat("ab1", 20), strings.Repeat("ab1", 20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := redact.Text(c.in)
			if got != c.want {
				t.Errorf("%q gives %q, want %q", c.in, got, c.want)
			}
			if again := redact.Text(got); again != got {
				t.Errorf("%q is redacted again: %q", got, again)
			}
		})
	}
}

// TestIdempotent redacts text made of what credentials consist of.
func TestIdempotent(t *testing.T) {
	pieces := []string{pem, pemEnd, jwt, "password", "token", ":", "=", `"`, `\"`, "'", " ", "\n", `\n`, "https://u:", "@", "/", "Bearer ", "abcdefgh", "A1b2", "[adlc: redacted credential]", "sk-", "ghp_", "é"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(t, "pieces"), "")
		once := redact.Text(s)
		if twice := redact.Text(once); twice != once {
			t.Fatalf("%q gives %q, then %q", s, once, twice)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("password=" + strings.Repeat("x", 9))
	f.Add(pem + "\nMIIE")
	f.Fuzz(func(t *testing.T, s string) {
		once := redact.Text(s)
		if twice := redact.Text(once); twice != once {
			t.Fatalf("%q gives %q, then %q", s, once, twice)
		}
	})
}
