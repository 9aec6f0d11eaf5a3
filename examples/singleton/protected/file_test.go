package protected

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/elector-go/elector"
)

func TestStaleWriterIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for _, step := range []struct {
		token elector.Token
		line  string
		want  error
	}{
		{5, "one", nil},
		{5, "two", nil},
		{9, "three", nil},
		{5, "stale", elector.ErrStale},
		{8, "stale", elector.ErrStale},
		{0, "no token", elector.ErrInvalid},
		{elector.MaxToken, "four", nil},
		{9, "stale", elector.ErrStale},
	} {
		f := &File{path} // anew, as after a restart
		if err := f.Append(step.token, step.line); !errors.Is(err, step.want) {
			t.Errorf("append %q with token %d: %v; want %v", step.line, step.token, err, step.want)
		}
	}
	got, err := (&File{path}).Read(elector.MaxToken)
	if want := []string{"one", "two", "three", "four"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the file has %q, %v; want %q", got, err, want)
	}
}

func TestReadingShowsTheToken(t *testing.T) {
	f := &File{filepath.Join(t.TempDir(), "journal")}
	if lines, err := f.Read(7); err != nil || len(lines) != 0 {
		t.Errorf("read: %q, %v; want nothing", lines, err)
	}
	if err := f.Append(6, "late"); !errors.Is(err, elector.ErrStale) {
		t.Errorf("append after a read with a higher token: %v; want ErrStale", err)
	}
	if _, err := f.Read(6); !errors.Is(err, elector.ErrStale) {
		t.Errorf("read with a stale token: %v; want ErrStale", err)
	}
}

func TestForeignFileIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for _, content := range []string{"x", strings.Repeat("not ours\n", 10)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (&File{path}).Append(7, "line"); err == nil {
			t.Errorf("appended to %q", content)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("changed %q to %q, %v", content, got, err)
		}
	}
}

// Writers with different tokens at once: whatever the order, what stands in the
// file never goes back to a lower token.
func TestTokensNeverGoBack(t *testing.T) {
	f := &File{filepath.Join(t.TempDir(), "journal")}
	var writers sync.WaitGroup
	for token := elector.Token(1); token <= 8; token++ {
		writers.Go(func() {
			for range 5 {
				if err := f.Append(token, token.String()); err != nil && !errors.Is(err, elector.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	lines, err := f.Read(8)
	if err != nil || !slices.Contains(lines, "8") {
		t.Fatalf("%q, %v", lines, err)
	}
	if !slices.IsSortedFunc(lines, func(a, b string) int {
		var x, y int
		fmt.Sscan(a, &x)
		fmt.Sscan(b, &y)
		return x - y
	}) {
		t.Errorf("tokens went back: %q", lines)
	}
}
