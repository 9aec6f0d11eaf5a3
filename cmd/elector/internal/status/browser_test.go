//go:build browser

package status

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

var shots = flag.String("shots", "", "the folder for screenshots")

// TestBrowser opens the page in Chromium, in two widths and with 1, 50 and 2,000
// elections, of which one has lapsed, one is vacant, one foreign, and one on a store
// that does not answer. It fails if the console shows anything or a row is missing.
// To look at the page:
//
//	go test -tags browser -run TestBrowser ./internal/status -shots /tmp/shots
func TestBrowser(t *testing.T) {
	if *shots == "" {
		*shots = t.TempDir()
	}
	for _, n := range []int{1, 50, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, away := newStore(t, "fleet"), newStore(t, "away")
			away.breaks(backends.ErrUnavailable)
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("election-%04d", i)
				put(t, s, names[i], fmt.Sprintf("<b>node-%d</b>", i), uint64(i+1), 1)
			}
			stores := []Store{{"test://fleet", names}}
			if n > 1 {
				dead := backends.Record{Holder: "gone", Token: 1, TTL: time.Second, RenewEvery: time.Second / 2, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
				s.Put(names[1], backends.Encode(names[1], dead))
				put(t, s, names[2], "", 9, 1)
				s.Put(names[3], []byte("{}"))
				stores = append(stores, Store{"test://away", []string{"elsewhere"}})
				n++
			}
			f := fleet(t, Options{Reads: 1000}, stores...)
			server := httptest.NewServer(f.Handler())
			defer server.Close()
			await(t, f)
			for _, width := range []int{360, 1280} {
				shot := filepath.Join(*shots, fmt.Sprintf("%d-%d.png", n, width))
				browse(t, server.URL, width, "--screenshot="+shot)
				dom := browse(t, server.URL, width, "--dump-dom")
				if rows := strings.Count(dom, ` role="row"`) - 1; rows != n {
					t.Errorf("%d rows, want %d", rows, n)
				}
				for _, state := range []string{"error", "lapsed", "unknown", "vacant"} {
					if rows := strings.Count(dom, `<tr role="row" class="`+state+`"`); rows != min(n/2, 1) {
						t.Errorf("%d rows are %s", rows, state)
					}
				}
				if strings.Contains(dom, "<b>node") {
					t.Error("an id became an element")
				}
			}
		})
	}
}

// TestBrowserGroups opens the page in Chromium, light and dark and in two widths, with
// groups of 0, 64 and 10,000 partitions: the first one is named and never was, the others
// have 3 and 40 members, a member that came five minutes ago, and a second store that does
// not answer.
func TestBrowserGroups(t *testing.T) {
	if *shots == "" {
		*shots = t.TempDir()
	}
	for _, c := range []struct{ partitions, members, strips int }{{0, 0, 0}, {64, 3, 3}, {10000, 40, mostStrips}} {
		t.Run(fmt.Sprint(c.partitions), func(t *testing.T) {
			s, away := newStore(t, "fleet"), newStore(t, "away")
			away.breaks(backends.ErrUnavailable)
			for i := range c.members {
				joins(t, s, fmt.Sprintf("<b>member-%02d</b>", i), c.partitions)
			}
			f := fleet(t, Options{Reads: 1000}, Store{"test://fleet", []string{"orders"}}, Store{"test://away", []string{"elsewhere"}})
			server := httptest.NewServer(f.Handler())
			defer server.Close()
			for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
				all := f.snapshot("")
				if len(all.Elections) > 0 && all.Elections[0].State != "unknown" && c.partitions == 0 {
					break
				}
				if len(all.Groups) == 1 && all.Groups[0].State == "held" && all.Groups[0].Moving == 0 && all.Groups[0].Members == c.members {
					f.mutex.Lock() // ten minutes later
					g := f.stores[0].groups[0]
					now := g.past.moments[len(g.past.moments)-1]
					g.past.moments = nil
					for n := range int64(steps) {
						m := moment{number: now.number - steps + 1 + n, owned: maps.Clone(now.owned)}
						if n < steps/2 {
							last := fmt.Sprintf("<b>member-%02d</b>", c.members-1)
							m.owned["<b>member-00</b>"] += m.owned[last]
							m.owned[last] = 0
						} else if n == steps/2 {
							m.without = now.owned["<b>member-00</b>"]
						}
						g.past.moments = append(g.past.moments, m)
					}
					f.mutex.Unlock()
					break
				}
				if t.Context().Err() != nil {
					t.Fatalf("%+v", all)
				}
			}
			groups := min(c.partitions, 1)
			for _, width := range []int{360, 1280} {
				browse(t, server.URL, width, fmt.Sprintf("--screenshot=%s", filepath.Join(*shots, fmt.Sprintf("groups-%d-%d.png", c.partitions, width))))
				browse(t, server.URL, width, fmt.Sprintf("--screenshot=%s", filepath.Join(*shots, fmt.Sprintf("groups-%d-%d-dark.png", c.partitions, width))), "--blink-settings=preferredColorScheme=0")
				dom := browse(t, server.URL, width, "--dump-dom")
				if cards := strings.Count(dom, `class="head"`); cards != groups {
					t.Errorf("%d cards of groups, want %d", cards, groups)
				}
				if strips := strings.Count(dom, "<svg "); strips != c.strips+groups { // and the one without owner
					t.Errorf("%d strips, want %d", strips, c.strips+groups)
				}
				if rows := strings.Count(dom, ` role="row"`) - 1; rows != 2-groups {
					t.Errorf("%d elections, want %d", rows, 2-groups)
				}
				if len(dom) > 100<<10 {
					t.Errorf("the page has %d bytes", len(dom))
				}
				if strings.Contains(dom, "<b>member") {
					t.Error("an id became an element")
				}
			}
		})
	}
}

// await waits until all that the page shows is known.
func await(t *testing.T, f *Fleet) {
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		states := map[string]int{}
		for _, r := range f.snapshot("").Elections {
			states[r.State]++
		}
		if len(f.stores) == 1 && states["held"] == 1 || states["lapsed"] == 1 && states["unknown"] == 1 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%v", states)
		}
	}
}

// browse opens the page, and returns what Chromium prints.
func browse(t *testing.T, url string, width int, what ...string) string {
	t.Helper()
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
		}
	}
	if browser == "" {
		t.Fatal("no Chromium here; on Debian: apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"--headless", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=4000", fmt.Sprintf("--window-size=%d,900", width), "--user-data-dir=" + t.TempDir()}
	args = append(append(args, what...), url)
	if os.Getuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...)
	}
	var log strings.Builder
	c := exec.CommandContext(ctx, browser, args...)
	c.Stderr = &log
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, ":CONSOLE") {
			t.Errorf("the console shows %s", line)
		}
	}
	return string(out)
}
