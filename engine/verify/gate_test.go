package verify_test

import (
	"strings"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/render"
	"handoffd/engine/verify"
)

const six = "WHAT_CHANGED: x\nVALIDATION:\nBLOCKERS: none\nRISKS: none\nFOLLOW_UP: none\n"

func TestGateOfContract(t *testing.T) {
	for _, c := range []struct {
		name, block        string
		complete, evidence bool
	}{
		{"none", "", false, true},
		{"complete", six + "RESULT: PARTIAL\nEVIDENCE: log", true, true},
		{"value may be empty", six + "RESULT:\nEVIDENCE:", true, true},
		{"not at the start of a line", six + " RESULT: x\nEVIDENCE: y", false, true},
		{"another letter case is another name", six + "Result: x\nEVIDENCE: y", false, true},
		{"done", six + "RESULT: DONE\nEVIDENCE: log of run 7", true, true},
		{"done in lower case, no evidence", six + "RESULT: done\nEVIDENCE:", true, false},
		{"done, with words", six + "RESULT: Done, all of it\nEVIDENCE: ", true, false},
		{"done, emphasised", six + "RESULT: **DONE**\nEVIDENCE: -", true, false},
		{"done, without the field", six + "RESULT: DONE", false, false},
		{"evidence on the next line", six + "RESULT: DONE\nEVIDENCE:\nthe log says so", true, false},
		{"another field below is no evidence", "RESULT: DONE\nEVIDENCE:\n" + six, true, false},
		{"placeholder", six + "RESULT: DONE\nEVIDENCE: N/A", true, false},
		{"placeholder with a dot", six + "RESULT: DONE\nEVIDENCE: none.", true, false},
		{"spaces that do not look like some", six + "RESULT: DONE\nEVIDENCE: \u200b\u00a0", true, false},
		{"fillers that count as letters", six + "RESULT: DONE\nEVIDENCE: \u3164\u115f", true, false},
		{"said twice, once without", six + "RESULT: PARTIAL\nRESULT: DONE\nEVIDENCE:", true, false},
		{"given twice", six + "RESULT: DONE\nEVIDENCE:\nEVIDENCE: log", true, true},
		{"not done", six + "RESULT: not done\nEVIDENCE:", true, true},
		{"undone", six + "RESULT: UNDONE\nEVIDENCE:", true, true},
		{"carriage returns", strings.ReplaceAll(six+"RESULT: DONE\nEVIDENCE: log", "\n", "\r\n"), true, true},
		{"bare carriage returns hide nothing", six + "RESULT: x\rRESULT: DONE\nEVIDENCE:", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			contract := render.NewContract(c.block)
			if err := verify.Complete(contract); (err == nil) != c.complete {
				t.Errorf("complete: %v", err)
			}
			if err := verify.Evidenced(contract); (err == nil) != c.evidence {
				t.Errorf("evidence: %v", err)
			}
			if err := verify.Ready(contract); (err == nil) != (c.complete && c.evidence) || err != nil && !fault.Is(err, fault.GateRejected) {
				t.Errorf("ready: %v", err)
			}
		})
	}
}
