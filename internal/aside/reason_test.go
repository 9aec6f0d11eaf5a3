package aside

import "testing"

func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"no right to read":                "no right to read",
		"10.0.0.1:2379: refused after 5s": "...:: refused after ",
		"denied (request 7d8f4c1e-8dab-4b2f-abcd-0123456789ab)": "denied (request )",
		"denied, RequestID: VKOQ2ABCD":                          "denied, RequestID: ",
		"table élector7":                                        "table é",
	} {
		if got := Reason(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
