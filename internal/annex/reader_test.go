package annex

import (
	"testing"

	"github.com/elector-go/elector/backends"
)

// What a Reader has decoded it returns again for the renewals of a record, and for no record
// of which its extensions say something else.
func TestReader(t *testing.T) {
	x, err := Request{Token: 7, Nonce: "1", To: "next", By: "operator"}.Into("")
	if err == nil {
		x, err = Pause{Reason: "repair"}.Into(x)
	}
	if err != nil {
		t.Fatal(err)
	}
	var d Reader
	leads := backends.Record{Version: "1", Holder: "leader", Token: 7, Extensions: x}
	for sequence := range uint64(3) {
		leads.Attempt.Sequence = sequence
		if a := d.Of(leads); a.Request.To != "next" || a.Pause != nil || d.Decoded.Load() != 1 {
			t.Errorf("a record with a request says %+v; decoded %d times", a, d.Decoded.Load())
		}
	}
	later, vacant, plain := leads, leads, leads
	later.Token, vacant.Holder, plain.Extensions = 8, "", ""
	if a := d.Of(later); a.Request.Token != 0 || a.Bid.ID != "next" {
		t.Errorf("with a request to another leader it says %+v", a)
	}
	if d.Of(leads); d.Of(vacant).Pause == nil {
		t.Error("the vacancy has no pause")
	}
	if a := d.Of(plain); a != (Annex{}) {
		t.Errorf("a record without extensions says %+v", a)
	}
}
