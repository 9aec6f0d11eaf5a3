//go:build browser

package status

import (
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

var shots = flag.String("shots", "", "the folder for screenshots")

// everywhere calls a test in two widths, light and dark.
func everywhere(test func(width int, scheme string)) {
	for _, width := range []int{360, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			test(width, scheme)
		}
	}
}

// fits fails the test if the page can be scrolled sideways, or what others wrote became an
// element.
func (b *browser) fits(when string) {
	b.t.Helper()
	var is struct{ Scroll, Width, Elements int }
	b.eval(`({scroll: document.documentElement.scrollWidth, width: innerWidth, elements: document.querySelectorAll("bdi b, bdi i, .name b").length})`, &is)
	if is.Scroll > is.Width || is.Elements > 0 {
		b.t.Errorf("%s: the page is %d wide in a window of %d, and %d elements are of what others wrote", when, is.Scroll, is.Width, is.Elements)
	}
}

// legible fails the test unless each state that is shown has a contrast of 4.5 or more.
func (b *browser) legible(when string) {
	b.t.Helper()
	low := map[string]float64{}
	b.eval(`(() => {
		const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		const paint = colours => {
			for (const c of colours) { context.fillStyle = c; context.fillRect(0, 0, 1, 1); }
			const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
			return .2126 * r + .7152 * g + .0722 * b;
		};
		const low = {};
		const kinds = new Map([byId("live"), ...document.querySelectorAll(".state, .small.dim")].map(e => [e.className + "/" + e.closest("tr, .group, .store, button, body").className, e]));
		for (const e of kinds.values()) {
			if (e.offsetParent === null || !e.textContent) continue;
			const behind = [];
			for (let p = e; p; p = p.parentElement) behind.unshift(getComputedStyle(p).backgroundColor);
			const [x, y] = [paint(behind), paint([getComputedStyle(e).color])].sort((a, b) => a - b);
			if ((y + .05) / (x + .05) < 4.5) low[e.textContent] = (y + .05) / (x + .05);
		}
		return low;
	})()`, &low)
	for text, contrast := range low {
		b.t.Errorf("%s: %q has a contrast of %.2f", when, text, contrast)
	}
}

// terms are some of a paused election.
const terms = "hohc06b7bl  mwvohiq5 l host-1;hohc06o77s  mwvohiq9 p pause%20by%20operator"

// populate puts elections into a store: of the first eight, each is in another state.
func populate(s *testStore, n int) (names []string) {
	for i := range n {
		name := fmt.Sprintf("election-%04d", i)
		names = append(names, name)
		r := backends.Record{Token: 1795584224526472, TTL: time.Hour, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
		switch i {
		case 1:
			r.Holder, r.TTL, r.RenewEvery = "gone", time.Second, time.Second/2
		case 2: // vacant
		case 3:
			r.Extensions = `{"c_pause":"3600000 operator@host migration%2042","k_history":"` + terms + `"}`
		case 4:
			r.Holder, r.Extensions = "<b>leaving</b>", `{"t_bid":"7 n next-one","t_request":"1795584224526472 n operator draining"}`
		case 5:
			s.Put(name, []byte("{}"))
			continue
		case 6: // idle
		default:
			r.Holder, r.Value = fmt.Sprintf("<b>node-%d</b>", i), fmt.Sprintf("10.0.0.%d:80", i)
		}
		s.Put(name, backends.Encode(name, r))
	}
	return names
}

// TestBrowser opens the page in Chromium, in two widths, light and dark, with 0, 5 and 2,000
// elections in different states; with 2,000 there is a second store that does not answer.
// To look at the page:
//
//	go test -tags browser -run TestBrowser ./internal/status -shots /tmp/shots
func TestBrowser(t *testing.T) {
	b := open(t)
	for _, n := range []int{0, 5, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b.t = t
			s := newStore(t, "fleet")
			stores := []Store{{URL: "test://fleet", Elections: populate(s, n), VacantOK: []string{"*-0006"}}}
			want := map[string]int{"held": 1, "lapsed": 1, "vacant": 1, "paused": 1, "draining": 1}
			switch n {
			case 0:
				stores, want = []Store{{URL: "memory://browser"}}, map[string]int{}
			case 2000:
				newStore(t, "away").breaks(fmt.Errorf("%w: it is far away", backends.ErrUnavailable))
				stores = append(stores, Store{URL: "test://away", Elections: []string{"elsewhere", "election-0003"}})
				want = map[string]int{"held": n - 6, "lapsed": 1, "vacant": 1, "paused": 1, "draining": 1, "foreign": 1, "idle": 1, "down": 2}
			}
			server := httptest.NewServer(fleet(t, Options{Reads: 1000, All: n == 0}, stores...).Handler())
			defer server.Close()
			defer b.leave()
			everywhere(func(width int, scheme string) {
				where := fmt.Sprintf("%d-%d-%s", n, width, scheme)
				b.visit(server.URL, width, scheme)
				for state, rows := range want {
					b.await(fmt.Sprintf(`document.querySelectorAll("tbody tr.%s").length === %d`, state, rows))
				}
				switch n {
				case 0:
					b.await(`byId("live").textContent === "● live" && document.querySelector(".note").textContent === "No elections yet."`)
				case 5:
					b.await(`byId("live").textContent === "● live" && document.title === "(2) Elections"`)
				case 2000:
					b.await(`byId("live").className === "down" && byId("live").textContent.includes("1 of 2 stores does not answer") && document.title === "(4) Elections"`)
					b.await(`document.querySelectorAll("section.store").length === 2 && document.querySelector("section.store.down").textContent.includes("far away")`)
				}
				b.legible(where)
				b.fits(where)
				b.shot(where)
				if n == 0 {
					return
				}
				b.visit(server.URL+"/#election-0003", width, scheme) // opens a row
				b.await(`document.querySelector("[aria-expanded=true]").textContent === "election-0003" && document.querySelectorAll(".c-more svg").length === 2`)
				b.await(`[...document.querySelectorAll(".c-more code")].map(e => e.textContent).join() === "elector resume election-0003"`)
				b.await(`document.querySelectorAll(".c-more svg.pause").length === 1 && document.querySelectorAll(".c-more svg.bad").length === 1`)
				b.await(`[...document.querySelectorAll("tr.held .name")].find(e => e.textContent === "election-0000").click() || document.querySelectorAll(".c-more code").length === 3`)
				b.legible(where + " open")
				b.fits(where + " open")
				b.shot(where + "-open")
			})
		})
	}
}

// The page is red while its store does not answer, and when elector serve is gone itself.
func TestBrowserRed(t *testing.T) {
	b := open(t)
	s := newStore(t, "fleet")
	server := httptest.NewServer(fleet(t, Options{}, Store{URL: "test://fleet", Elections: populate(s, 5)}).Handler())
	defer server.Close()
	live := `byId("live").textContent === "● live" && document.querySelectorAll("tbody tr.held").length === 1`
	b.visit(server.URL, 1280, "light")
	b.await(live)
	s.breaks(fmt.Errorf("%w: connection refused", backends.ErrUnavailable))
	b.await(`byId("live").className === "down" && byId("live").textContent === "✕ the store does not answer" && document.querySelectorAll("tbody tr.down").length === 5`)
	b.await(`document.title === "(1) Elections" && byId("icon").href.includes("b3261e")`)
	b.legible("the store is down")
	b.shot("store-down")
	s.breaks(nil)
	b.await(live)
	b.broken = true
	server.CloseClientConnections()
	server.Close()
	b.await(`byId("live").className === "down" && byId("live").textContent === "✕ elector serve does not answer" && byId("stores").className === "old" && byId("age").textContent !== ""`)
	b.legible("serve is gone")
	b.shot("serve-gone")
}

// TestBrowserGroups opens the page with groups of 0, 64 and 10,000 partitions: the first one
// is named and never was, the others have 3 and 40 members, a member that came five minutes
// ago, and a second store that does not answer.
func TestBrowserGroups(t *testing.T) {
	b := open(t)
	for _, c := range []struct{ partitions, members, strips int }{{0, 0, 0}, {64, 3, 3}, {10000, 40, mostStrips}} {
		t.Run(fmt.Sprint(c.partitions), func(t *testing.T) {
			b.t = t
			s, away := newStore(t, "fleet"), newStore(t, "away")
			away.breaks(backends.ErrUnavailable)
			for i := range c.members {
				joins(t, s, fmt.Sprintf("<b>member-%02d</b>", i), c.partitions)
			}
			for tick := time.NewTicker(20 * time.Millisecond); c.members > 0; <-tick.C { // until there is a group
				if r, err := s.Handle().Load(t.Context(), partition.Plan("orders")); err != nil {
					t.Fatal(err)
				} else if r.Exists() {
					break
				}
			}
			f := fleet(t, Options{Reads: 1000}, Store{URL: "test://fleet", Elections: []string{"orders"}}, Store{URL: "test://away", Elections: []string{"elsewhere"}})
			server := httptest.NewServer(f.Handler())
			defer server.Close()
			defer b.leave()
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
			everywhere(func(width int, scheme string) {
				where := fmt.Sprintf("groups-%d-%d-%s", c.partitions, width, scheme)
				b.visit(server.URL, width, scheme)
				b.await(fmt.Sprintf(`document.querySelectorAll(".group").length === %d && document.querySelectorAll(".group svg").length === %d && document.querySelectorAll("tbody tr").length === %d`,
					groups, c.strips+groups, 2-groups)) // one strip is of those without an owner
				b.legible(where)
				b.fits(where)
				b.shot(where)
			})
		})
	}
}
