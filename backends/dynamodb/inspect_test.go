package dynamodb

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// List follows the pages.
func TestListPages(t *testing.T) {
	f := newFake(t)
	f.on("Scan", func(w http.ResponseWriter, r *http.Request) {
		answer := says(`{"Items":[{"election":{"S":"b"}},{"election":{"S":"c"}}],"LastEvaluatedKey":{"election":{"S":"c"}}}`)
		if asked := f.bodies("Scan"); strings.Contains(asked[len(asked)-1], "ExclusiveStartKey") {
			answer = says(`{"Items":[{"election":{"S":"a"}},{"election":{"S":"not a name"}}]}`)
		}
		answer(w, r)
	})
	names, err := f.open(t).(backends.Lister).List(t.Context())
	if err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

// Inspect shows the server's clock, and finds capacity that is too low for one
// election.
func TestInspect(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	yesterday := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	for units, low := range map[string]bool{"1": true, "5": false} {
		f.on("DescribeTable", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", yesterday.UTC().Format(http.TimeFormat))
			says(`{"Table":{`+description+`,"ProvisionedThroughput":{"WriteCapacityUnits":`+units+`}}}`)(w, r)
		})
		i, err := b.(backends.Inspector).Inspect(t.Context(), time.Second)
		if err != nil || !i.Clock.Equal(yesterday) || len(i.Findings) != 1 || (i.Findings[0].Fix != "") != low {
			t.Errorf("with %s units: %+v, %v", units, i, err)
		}
	}
}
