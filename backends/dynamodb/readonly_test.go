package dynamodb

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

var denied = fails(400, "AccessDeniedException", "User: arn:aws:iam::1:user/u is not authorized")

// operations are those that were asked for.
func (f *fake) operations() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Sorted(maps.Keys(f.asked))
}

// A handle for reading alone sends nothing but reads, whatever else its URL has.
func TestReadOnly(t *testing.T) {
	f := newFake(t)
	f.on("DescribeTable", denied)
	f.on("BatchGetItem", says(`{"Responses":{"elector":[]}}`))
	f.on("Scan", says(`{"Items":[]}`))
	b, err := backends.OpenReadOnly(t.Context(), f.address("&create=true&single_region=true").String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := f.operations(); !slices.Equal(got, []string{"GetItem"}) {
		t.Errorf("opening asks for %q", got)
	}
	if !b.Describe().ReadOnly {
		t.Error("its description has ReadOnly false")
	}
	_, loaded := b.Load(t.Context(), "a")
	many := b.(backends.BatchLoader).LoadMany(t.Context(), []string{"a", "b"})
	_, listed := b.(backends.Lister).List(t.Context())
	i, inspected := b.(backends.Inspector).Inspect(t.Context(), time.Second)
	if err := errors.Join(loaded, many[0].Err, many[1].Err, listed, inspected); err != nil {
		t.Error(err)
	}
	if len(i.Findings) != 1 || i.Findings[0].Fix != "" || !strings.Contains(i.Findings[0].Seen, "dynamodb:DescribeTable") {
		t.Errorf("without the right to describe the table it finds %+v", i.Findings)
	}
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	if got := f.operations(); !slices.Equal(got, []string{"BatchGetItem", "DescribeTable", "GetItem", "Scan"}) {
		t.Errorf("all that was asked for: %q", got)
	}
}

func TestReadOnlyRefuses(t *testing.T) {
	for what, test := range map[string]struct {
		answer func(*fake)
		kind   error
		says   string
	}{
		"no table": {func(f *fake) { f.on("GetItem", fails(400, notFound, "not found")) }, backends.ErrMisconfigured,
			"there is no table elector in region eu-central-1 of this account, so no election has ever used it"},
		"no right":    {func(f *fake) { f.on("GetItem", denied) }, backends.ErrDenied, "can allow dynamodb:GetItem and BatchGetItem on the table, and Scan"},
		"another key": {func(f *fake) { f.on("GetItem", fails(400, "ValidationException", "")) }, backends.ErrMisconfigured, "does not fit"},
	} {
		f := newFake(t)
		test.answer(f)
		err := f.refused(t, "&readonly=true&create=true")
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "opening dynamodb://elector") {
			t.Errorf("%s: got %v", what, err)
		}
		if got := f.operations(); !slices.Equal(got, []string{"GetItem"}) {
			t.Errorf("%s: opening asks for %q", what, got)
		}
	}
}
