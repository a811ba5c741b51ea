package ledger_test

import (
	"errors"
	"reflect"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/session"
	"handoffd/engine/sqlite"
	"handoffd/engine/turn"
)

func TestInOrder(t *testing.T) {
	path := t.TempDir() + "/x.db"
	db := harnesstest.Owner(t, path, "DELETE")
	harnesstest.Do(t, db, `CREATE TABLE m (s TEXT, made INTEGER);
		INSERT INTO m(rowid, s, made) VALUES (1,'a',20),(2,'b',5),(3,'a',10),(4,'a',20),(5,'a',NULL)`)
	var got []ledger.At
	err := sqlite.View(path, func(d *sqlite.DB) (err error) {
		table, _ := d.Table("m")
		got, err = ledger.InOrder(table, "s", "a", "made")
		return err
	})
	if want := []ledger.At{{5, 0}, {3, 10}, {1, 20}, {4, 20}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("InOrder = %v, %v, want %v", got, err, want)
	}
}

// TestRead checks what a line of an export comes to, and that one that is no
// record leaves all as it was.
func TestRead(t *testing.T) {
	var tape ledger.Tape
	text, told := "", ""
	read := func(v *harness.Value) {
		text = ""
		v.Fields(func(name string) {
			if name == "text" {
				text = v.Text()
			}
		})
	}
	take := func(kind string, _ *session.Meta) string {
		told = kind
		tape.Add(turn.Turn{Text: text})
		return "strange"
	}
	for _, c := range []struct {
		unit, kind, text string
		flagged          bool
	}{
		{`{"session":{"text":"a"}}`, "session", "a", false},
		{`{"message":{}}`, "message", "", false},
		{`{"message":{"text":"a","text":"b"}}`, "message", "b", true},
	} {
		out := harness.Out{Meta: &session.Meta{}}
		if err := tape.Read([]byte(c.unit), &out, read, take); err != nil {
			t.Fatalf("%s: %v", c.unit, err)
		}
		if told != c.kind || len(out.Turns) != 1 || out.Turns[0].Text != c.text || out.Unknown != "strange" || out.Flagged != c.flagged {
			t.Errorf("%s: kind %q, %+v", c.unit, told, out)
		}
	}
	for unit, rejected := range map[string]bool{`{}`: true, `{"session":5}`: true, `[]`: true, `{"session":{`: false, ``: false} {
		told = ""
		out := harness.Out{Meta: &session.Meta{}}
		err := tape.Read([]byte(unit), &out, read, take)
		var rejection *harness.Rejection
		if err == nil || errors.As(err, &rejection) != rejected || told != "" || len(out.Turns) > 0 || out.Unknown != "" {
			t.Errorf("%q: %v, %+v", unit, err, out)
		}
	}
}

func TestExit(t *testing.T) {
	for raw, want := range map[string]int{"0": 0, "1": 1, `"127"`: 127, "-1": -1, "1.5": 99, "null": 99, "{}": 99, "99999999999999999999": 99} {
		code := 99
		exit := &code
		var v harness.Value
		if _, err := v.Walk([]byte(raw), func(v *harness.Value) { ledger.Exit(v, &exit) }); err != nil || *exit != want {
			t.Errorf("Exit(%s) = %d, %v, want %d", raw, *exit, err, want)
		}
	}
}
