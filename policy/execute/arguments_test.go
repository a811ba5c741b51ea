package execute

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
)

func TestSplit(t *testing.T) {
	for in, want := range map[string][]string{
		`a b`:                          {"a", "b"},
		"  a \t b\r\n":                 {"a", "b"},
		`-e "process.exit(3)"`:         {"-e", "process.exit(3)"},
		`-e 'console.log("x y")'`:      {"-e", `console.log("x y")`},
		`"a \"b\" \\ \n"`:              {`a "b" \ \n`},
		`'a \" b\'`:                    {`a \" b\`},
		`a\ b \"c \'d \\e`:             {"a b", `"c`, "'d", `\e`},
		`C:\dir\file`:                  {`C:\dir\file`},
		`a""b ''`:                      {"ab", ""},
		`""`:                           {""},
		`x"y z"'w v'`:                  {"xy zw v"},
		`$HOME * ; | && > ~ $(id)`:     {"$HOME", "*", ";", "|", "&&", ">", "~", "$(id)"},
		"a\\":                          {`a\`},
		"\"h\u00e9\u2028 \U0001f600\"": {"h\u00e9\u2028 \U0001f600"},
	} {
		got, err := Split(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{``, `   `, `"a`, `a 'b`, `"a\"`, "a\x00b"} {
		if got, err := Split(bad); !fault.Is(err, fault.Usage) {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
}

// quoted writes arguments so that Split gives them back.
func quoted(args []string) string {
	var out []string
	for _, a := range args {
		out = append(out, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a)+`"`)
	}
	return strings.Join(out, " ")
}

func TestSplitGivesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOfN(rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 })), 1, 8).Draw(t, "args")
		got, err := Split(quoted(args))
		if err != nil || !slices.Equal(got, args) {
			t.Fatalf("%q became %q, %v", args, got, err)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(`-e "process.exit(3)" 'a b' c\ d`)
	f.Add(`"\\\"" ''`)
	f.Fuzz(func(t *testing.T, line string) {
		args, err := Split(line)
		if err != nil {
			if args != nil {
				t.Fatal("an error with arguments")
			}
			return
		}
		if len(args) == 0 || strings.Contains(strings.Join(args, ""), "\x00") {
			t.Fatalf("%q", args)
		}
		again, err := Split(quoted(args))
		if err != nil || !slices.Equal(again, args) {
			t.Fatalf("%q became %q, %v", args, again, err)
		}
	})
}
