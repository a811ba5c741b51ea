package mutation

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func open(id string) Record { return Record{Session: id, Ticket: "T1", Hash: "h1", Status: Open} }
func consumed(id string) Record {
	return Record{Session: id, Ticket: "T1", Hash: "h1", Status: Consumed}
}
func bare(id string) Record { return Record{Session: id, Status: Open} }

func auth(denier string) *Auth {
	return &Auth{Ticket: "T1", Hash: "h1", Denier: denier, Consumer: "me", Verified: true}
}

func with(a *Auth, change func(*Auth)) *Auth { change(a); return a }

var (
	bound   = &Grant{Session: "me"}
	unbound = &Grant{Session: "me", Unbound: true}
)

// TestGate is by the numbers of the published behaviour.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		want string // reasons, by a space
	}{
		{"30 clean", Input{}, ""},
		{"32 foreign open", Input{Records: []Record{open("d")}}, "D3:unauthorized_open:d"},
		{"33 consumed, denier", Input{Records: []Record{consumed("me")}}, "D2:denier_session"},
		{"33 consumed, other", Input{Records: []Record{consumed("d")}}, ""},
		{"31 own open", Input{Records: []Record{bare("me")}}, "D2:denier_session D3:unauthorized_open:me"},
		{"34 two open, one authorized", Input{Records: []Record{open("d"), open("e")}, Auth: auth("d")}, "D3:unauthorized_open:e"},
		{"35 good", Input{Records: []Record{open("d")}, Auth: auth("d")}, ""},
		{"35 wrong hash", Input{Records: []Record{open("d")}, Auth: with(auth("d"), func(a *Auth) { a.Hash = "h2" })}, "D3:unauthorized_open:d"},
		{"35 wrong ticket", Input{Records: []Record{open("d")}, Auth: with(auth("d"), func(a *Auth) { a.Ticket = "T2" })}, "D3:unauthorized_open:d"},
		{"35 wrong denier", Input{Records: []Record{open("d")}, Auth: auth("e")}, "D3:unauthorized_open:d"},
		{"35 other consumer", Input{Records: []Record{open("d")}, Auth: with(auth("d"), func(a *Auth) { a.Consumer = "you" })}, "D3:unauthorized_open:d"},
		{"35 not verified", Input{Records: []Record{open("d")}, Auth: with(auth("d"), func(a *Auth) { a.Verified = false })}, "D3:unauthorized_open:d"},
		{"36 no binds", Input{Records: []Record{bare("d")}, Auth: with(auth("d"), func(a *Auth) { a.Ticket, a.Hash = "", "" })}, "D3:unauthorized_open:d"},
		{"36 blank ticket", Input{Records: []Record{{Session: "d", Ticket: "  ", Hash: "h1", Status: Open}}, Auth: with(auth("d"), func(a *Auth) { a.Ticket = "  " })}, "D3:unauthorized_open:d"},
		{"37 bound grant, own bare record", Input{Records: []Record{bare("me")}, Grant: bound}, ""},
		{"37 bound grant, foreign bare record", Input{Records: []Record{bare("d")}, Grant: bound}, "D3:unauthorized_open:d"},
		{"37 bound grant, foreign bound record", Input{Records: []Record{open("d")}, Grant: bound}, ""},
		{"37 unbound grant", Input{Records: []Record{bare("d")}, Grant: unbound}, ""},
		{"38 grant of another", Input{Records: []Record{open("me")}, Grant: &Grant{Session: "you", Unbound: true}}, "D2:denier_session D3:unauthorized_open:me"},
		{"39 sticky", Input{Records: []Record{bare("me")}, Sticky: true, Grant: unbound}, "D1:process_sticky"},
		{"40 unavailable, bound", Input{Unavailable: true, Grant: bound}, "D0:deny_store_unavailable"},
		{"40 unavailable, unbound", Input{Unavailable: true, Grant: unbound}, ""},
		{"40 corrupt, bound", Input{Invalid: []Invalid{{"x"}}, Grant: bound}, "D3:invalid_record:x"},
		{"40 corrupt, unbound", Input{Invalid: []Invalid{{"x"}}, Grant: unbound}, ""},
		{"40 nobody's, unbound", Input{Invalid: []Invalid{{""}}, Grant: unbound}, "D3:invalid_record:?"},
		{"42 auth void", Input{Records: []Record{open("d")}, Auth: auth("d"), ManifestFailed: true}, "D3:unauthorized_open:d"},
		{"42 grant void", Input{Records: []Record{open("me")}, Grant: unbound, ManifestFailed: true}, "D2:denier_session D3:unauthorized_open:me"},
		{"46 once each", Input{Records: []Record{open("d"), open("d")}}, "D3:unauthorized_open:d"},
		{"no list", Input{BadRecords: true}, "D0:invalid_deny_records"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Session = "me"
			if got := strings.Join(Gate(c.in), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for _, id := range []string{"", "s1 ", "../x", "a/b", `a\b`, "..", " a", "."} {
		got := Gate(Input{Session: id, Sticky: true, Records: []Record{open("d")}})
		if !slices.Equal(got, []string{ReasonSession}) {
			t.Errorf("behaviour 41: %q gives %v", id, got)
		}
	}
	for _, id := range []string{"a", "a b", "a\nb", "S-1_x.y", "é"} {
		if !SafeID(id) {
			t.Errorf("behaviour 21: %q is not safe", id)
		}
	}
}

func TestGrantForms(t *testing.T) {
	for text, want := range map[string]*Grant{
		`{}`: nil, `[]`: nil, `"yes"`: nil, `1`: nil, `null`: nil, `false`: nil, `{"unboundReason":"  "}`: nil,
		`{"unboundReason":7}`: nil, `{"sessionId":"you"}`: nil, `{"sessionId":1}`: nil, `{"sessionId":"you","unboundReason":"x"}`: nil,
		`true`: {Session: "me"}, `{"sessionId":"me"}`: {Session: "me"}, `{"sessionId":"me","unboundReason":null}`: {Session: "me"},
		`{"unboundReason":"lost"}`: {Session: "me", Unbound: true}, `{"sessionId":"me","unboundReason":"lost"}`: {Session: "me", Unbound: true},
	} {
		got := ParseGrant(jsontext.Value(text), "me")
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("behaviour 38: %s gives %+v, want %+v", text, got, want)
		}
	}
}

// model says the rule over one record in other words.
func model(in Input) bool {
	if in.Sticky || in.BadRecords {
		return true
	}
	g := in.Grant
	if in.ManifestFailed || g != nil && g.Session != in.Session {
		g = nil
	}
	if (in.Unavailable || len(in.Invalid) > 0) && (g == nil || !g.Unbound) {
		return true
	}
	for _, r := range in.Records {
		if r.Session == in.Session && g == nil {
			return true
		}
		if r.Status == Consumed {
			continue
		}
		byGrant := g != nil && (r.Bound() || g.Unbound || r.Session == in.Session)
		byAuth := g == nil && !in.ManifestFailed && r.Bound() && in.Auth != nil && *in.Auth == Auth{r.Ticket, r.Hash, r.Session, in.Session, true}
		if !byGrant && !byAuth {
			return true
		}
	}
	return false
}

func TestGateAgainstModel(t *testing.T) {
	id := rapid.SampledFrom([]string{"me", "d", "e"})
	bind := rapid.SampledFrom([]string{"", "x", "y"})
	record := rapid.Custom(func(t *rapid.T) Record {
		return Record{Session: id.Draw(t, "of"), Ticket: bind.Draw(t, "ticket"), Hash: bind.Draw(t, "hash"), Status: rapid.SampledFrom([]string{Open, Consumed}).Draw(t, "status")}
	})
	rapid.Check(t, func(t *rapid.T) {
		in := Input{
			Session: "me", Records: rapid.SliceOfN(record, 0, 3).Draw(t, "records"),
			Sticky: rapid.IntRange(0, 9).Draw(t, "sticky") == 0, Unavailable: rapid.IntRange(0, 5).Draw(t, "unavailable") == 0,
			ManifestFailed: rapid.IntRange(0, 3).Draw(t, "failed") == 0,
		}
		if rapid.Bool().Draw(t, "invalid") {
			in.Invalid = []Invalid{{id.Draw(t, "invalid of")}}
		}
		if rapid.Bool().Draw(t, "auth") {
			in.Auth = &Auth{bind.Draw(t, "ticket"), bind.Draw(t, "hash"), id.Draw(t, "denier"), id.Draw(t, "consumer"), rapid.Bool().Draw(t, "verified")}
		}
		if rapid.Bool().Draw(t, "grant") {
			in.Grant = &Grant{id.Draw(t, "granted"), rapid.Bool().Draw(t, "unbound")}
		}
		why := Gate(in)
		if (len(why) > 0) != model(in) {
			t.Fatalf("%+v gives %v", in, why)
		}
		if slices.Contains(why, "") || len(slices.Compact(slices.Sorted(slices.Values(why)))) != len(why) {
			t.Fatalf("%v", why)
		}
	})
}
