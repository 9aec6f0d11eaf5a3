package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A node is an element of a page, read back.
type node struct {
	name  string
	attrs map[string]string
	nodes []*node
	up    *node
	text  string // its own
}

// draw writes a page and reads it back. It is written to be well-formed XML, all
// but its script.
func draw(t *testing.T, h *history.History, problems []Problem, about About) (string, *node) {
	t.Helper()
	var out bytes.Buffer
	if err := Page(&out, h, problems, about); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(strings.Replace(out.String(), pageScript, "", 1)))
	root := &node{}
	at := root
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			n := &node{name: x.Name.Local, attrs: map[string]string{}, up: at}
			for _, a := range x.Attr {
				n.attrs[a.Name.Local] = a.Value
			}
			at.nodes = append(at.nodes, n)
			at = n
		case xml.EndElement:
			at = at.up
		case xml.CharData:
			at.text += string(x)
		}
	}
	return out.String(), root
}

// all returns the elements below n that have a class, in their order.
func (n *node) all(name, class string) (found []*node) {
	for _, c := range n.nodes {
		if (name == "" || c.name == name) && (class == "" || slices.Contains(strings.Fields(c.attrs["class"]), class)) {
			found = append(found, c)
		}
		found = append(found, c.all(name, class)...)
	}
	return found
}

// title is what the pointer shows.
func (n *node) title() string {
	for _, c := range n.nodes {
		if c.name == "title" {
			return c.text
		}
	}
	return ""
}

func (n *node) number(t *testing.T, attr string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(n.attrs[attr], 64)
	if err != nil {
		t.Fatalf("%s of %s: %v", attr, n.name, err)
	}
	return x
}

// with returns the elements whose title has a text in it.
func (n *node) with(class, title string) (found []*node) {
	for _, c := range n.all("", class) {
		if strings.Contains(c.title(), title) {
			found = append(found, c)
		}
	}
	return found
}

func TestPageIsSelfContained(t *testing.T) {
	h, problems := campaign(2*time.Minute, true)
	text, root := draw(t, h, problems, About{})
	ids := map[string]bool{}
	for _, n := range root.all("", "") {
		if id := n.attrs["id"]; id != "" {
			if ids[id] {
				t.Errorf("the identifier %s is given twice", id)
			}
			ids[id] = true
		}
	}
	for _, n := range root.all("", "") {
		if slices.Contains([]string{"link", "img", "image", "iframe", "object", "embed", "base", "form", "foreignObject"}, n.name) {
			t.Errorf("the page has a %s", n.name)
		}
		for k, v := range n.attrs {
			switch {
			case k == "href":
				if id, ok := strings.CutPrefix(v, "#"); !ok || !ids[id] {
					t.Errorf("%s leads to %q, which is not in the page", n.name, v)
				}
			case k == "src" || k == "srcset" || k == "action" || strings.HasPrefix(k, "on") || strings.Contains(v, "url("):
				t.Errorf("%s has %s=%q", n.name, k, v)
			}
		}
	}
	for _, m := range regexp.MustCompile(`url\(([^)]*)\)`).FindAllStringSubmatch(pageStyle, -1) {
		if id, ok := strings.CutPrefix(m[1], "#"); !ok || !ids[id] {
			t.Errorf("the style needs %s, which is not in the page", m[0])
		}
	}
	for _, word := range []string{"@import", "@font-face", "http:", "https:", "//"} {
		if strings.Contains(pageStyle, word) || strings.Contains(strings.ReplaceAll(pageScript, "// Touch", ""), word) {
			t.Errorf("the style or the script has %q in it", word)
		}
	}
	if !strings.Contains(text, pageScript) || strings.Count(text, "<script") != 1 {
		t.Error("the page has not exactly the one script")
	}
}

func TestPageEscapes(t *testing.T) {
	const evil = `</title><script>alert("1")</script>&amp;'`
	s := newScript("etcd"+evil, "one"+evil)
	s.tell(0, "A"+evil, history.Opened)
	s.tell(100, "A"+evil, history.Acquired, token(1), valid(1000))
	s.tell(200, "A"+evil, history.Fault, detail("cut"+evil))
	s.tell(300, "A"+evil, history.Trouble, detail("trouble"+evil))
	s.tell(400, "A"+evil, history.Failed, token(1), write(1), detail("failed"+evil))
	s.tell(500, "A"+evil, history.Ended, token(1), detail("lost: "+evil))
	s.tell(600, "A"+evil, history.Fatal, detail("fatal"+evil))
	text, root := draw(t, s.h, []Problem{{s.name, "rule" + evil, "text" + evil, ms(300), "class" + evil}}, About{Notes: []string{"note" + evil}})
	if n := strings.Count(text, "<script"); n != 1 {
		t.Errorf("the page has %d scripts, want its own", n)
	}
	var shown strings.Builder
	for _, n := range root.all("", "") {
		shown.WriteString(n.text + "\n" + n.attrs["aria-label"] + "\n")
	}
	for _, want := range []string{"etcd", "one", "A", "cut", "trouble", "failed", "lost: ", "fatal", "rule", "text", "note"} {
		if !strings.Contains(shown.String(), want+evil) {
			t.Errorf("the page does not show %q", want+evil)
		}
	}
}

// Each kind of event can be seen, or is counted in its candidate's title.
func TestPageDrawsEachKind(t *testing.T) {
	s := newScript("etcd", "one")
	hold := func(holder string) func(*history.Event) { return func(e *history.Event) { e.Holder = holder } }
	for _, c := range []string{"A", "B", "C"} {
		s.tell(0, c, history.Started)
		s.tell(500, c, history.Opened)
	}
	s.tell(1000, "A", history.Acquired, token(11), valid(1800))
	s.tell(1200, "B", history.Waits, token(11), hold("A"))
	s.tell(1500, "A", history.Renewed, token(11), valid(1800))
	s.tell(1600, "A", history.Checked, token(11), valid(1700))
	s.tell(1700, "B", history.Observed, token(11), hold("A"))
	s.tell(1800, "A", history.Writing, token(11), write(1), valid(1500))
	s.tell(1801, "A", history.Accepted, token(11), write(1))
	s.tell(1802, "A", history.Wrote, token(11), write(1))
	s.tell(1900, "A", history.Failed, token(11), write(2), detail("no route"))
	s.tell(2000, "A", history.Trouble, detail("swap: no answer"))
	s.tell(2100, "A", history.Stopped)
	s.tell(6000, "B", history.Acquired, token(12), valid(1800))
	s.tell(6500, "A", history.Continued)
	s.tell(6501, "A", history.Stalled, func(e *history.Event) { e.Left = 4 * time.Second })
	s.tell(6502, "A", history.Rejected, token(11), write(3))
	s.tell(6503, "A", history.Refused, token(11), write(3))
	s.tell(6504, "A", history.Ended, token(11), detail("lost: ran out"))
	s.tell(6505, "A", history.Canceled, token(11))
	s.tell(6800, "A", history.Refused, token(11), write(4)) // the resource told nothing
	s.tell(7000, "A", history.Killed)
	s.tell(7010, "A", history.Exited, detail("signal: killed"))
	s.tell(7100, "B", history.Terminated)
	s.tell(7200, "B", history.Ended, token(12), detail("resigned: asked to"))
	s.tell(7300, "B", history.Released, token(12), detail("no answer"))
	s.tell(7400, "B", history.Exited)
	s.tell(8000, "C", history.Fault, detail("latency"))
	s.tell(9000, "C", history.Healed, detail("latency"))
	s.tell(9500, "", history.Fault, detail("server stopped"))
	s.tell(9900, "", history.Healed, detail("server stopped"))
	s.tell(10000, "", history.Removed)
	s.tell(11000, "", history.Restored)
	s.tell(12000, "", history.Spoiled)
	s.tell(13000, "C", history.Acquired, token(13), valid(5000))
	s.tell(13500, "", history.Edited, token(13), detail(history.EditedTTL))
	s.tell(13600, "", history.Edited, token(13), detail(history.Extension("k_x", "1")))
	s.tell(13700, "", history.Edited, token(13), detail(history.Extension("c_x", "1")))
	s.tell(13800, "", history.Shown, token(13), detail(`{"c_x":"1","k_x":"1"}`))
	s.tell(13900, "", history.Edited, token(13), detail(history.Extension("c_x", "")))
	s.tell(13950, "B", history.Discarded, token(14), detail("A holds it"))
	s.tell(14000, "C", history.Accepted, token(10), write(1))
	s.tell(15000, "C", history.Fatal, detail("no permission"))
	s.tell(15001, "C", history.Exited, detail("exit status 1"))
	_, root := draw(t, s.h, []Problem{{"one", "tok/fence", "a stale write", ms(14000), "safety"}}, About{})
	line := root.all("section", "line")[0]
	for _, want := range []struct{ class, title string }{
		{"m-started", "started at 0:00.000"},
		{"m-opened", "begins to campaign at 0:00.500"},
		{"m-waits", "sees A lead with token 11 at 0:01.200"},
		{"lead", "A leads with token 11: 0:01.000 to 0:03.300, 2.30 s; 1 renewal, 1 write accepted; lost: ran out; its worker knew at 0:06.505"},
		{"lead", "B leads with token 12: 0:06.000 to 0:07.200, 1.20 s; 0 renewals, 0 writes accepted; resigned: asked to; the store was told at 0:07.300 in vain: no answer"},
		{"k-renewed", "renewed"},
		{"k-trouble", "swap: no answer"},
		{"k-stalled", "stood still, at most for 4 s"},
		{"m-failed", "write 2 with token 11 failed: no route"},
		{"stop", "process stopped: 0:02.100 to 0:06.500, 4.40 s"},
		{"m-refused", "write 3 with token 11 refused as stale at 0:06.502"},
		{"m-refused", "write 4 with token 11 refused as stale at 0:06.800"},
		{"m-lost", "token 11 lost: ran out at 0:06.504"},
		{"m-canceled", "token 11: the worker knows"},
		{"m-killed", "killed at 0:07.000"},
		{"m-terminated", "told to end at 0:07.100"},
		{"m-resigned", "token 12 resigned: asked to"},
		{"m-released", "token 12: the store was told in vain: no answer"},
		{"m-over", "the process ended in order at 0:07.400"},
		{"broken", "latency: 0:08.000 to 0:09.000, 1 s"},
		{"broken", "store: server stopped: 0:09.500 to 0:09.900, 400 ms"},
		{"storefault", "store: server stopped"},
		{"m-record", "record removed: 0:10.000"},
		{"m-record", "record rolled back: 0:11.000"},
		{"broken", "store: record spoiled: 0:12.000 to 0:13.000"},
		{"m-edited", "TTL changed: 0:13.500"},
		{"m-edited", "kept extension: 0:13.600"},
		{"broken", "store: critical extension: 0:13.700 to 0:13.900"},
		{"m-disbelieved", "token 14: the store applied the swap, which is not believed: A holds it"},
		{"m-accepted", "write 1 with token 10 ACCEPTED THOUGH STALE"},
		{"m-fatal", "gave up: no permission"},
		{"m-exited", "the process ended: exit status 1"},
		{"orphan", "the lease of a dead leader runs on: 0:15.000 to 0:18.000, 3 s"},
		{"problem", "tok/fence: a stale write"},
		{"gap", "no leader: 0:00.000 to 0:01.000, 1 s; the first leader"},
		{"gap", "no leader: 0:03.300 to 0:06.000, 2.70 s; takeover"},
		{"gap", "no leader: 0:07.200 to 0:13.000, 5.80 s; takeover"},
		{"name", "A: accepted 1, acquired 1, canceled 1, checked 1, continued 1, ended 1, exited 1, failed 1, killed 1, opened 1, refused 2, rejected 1, renewed 1, stalled 1, started 1, stopped 1, trouble 1, writing 1, wrote 1"},
		{"name", "observed 1"},
	} {
		if len(line.with(want.class, want.title)) == 0 {
			t.Errorf("no %s says %q", want.class, want.title)
			for _, n := range line.all("", want.class) {
				t.Log("but: ", n.title())
			}
		}
	}
	if names := line.all("text", "fault"); !slices.ContainsFunc(names, func(n *node) bool { return n.text == "latency" }) {
		t.Error("the name of the fault latency is not written")
	}
	for _, token := range []string{"11", "13"} /* there is no room for 12 */ {
		if !slices.ContainsFunc(line.all("text", "token"), func(n *node) bool { return n.text == token }) {
			t.Errorf("token %s is not written", token)
		}
	}
}

// What is drawn is as long as it was, at the place of its time, and its length
// is written beside it.
func TestPageLengths(t *testing.T) {
	_, root := draw(t, election().h, nil, About{})
	line := root.all("section", "line")[0]
	rows := line.all("svg", "row")
	if len(rows) != 2 {
		t.Fatalf("%d rows, want 2 of 30 s", len(rows))
	}
	left := widthOf("store") + 7
	scale := (rowRight - left) / 30 // units of a second
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want-0.15 || got > want+0.15 {
			t.Errorf("%s is %.2f, want %.2f", what, got, want)
		}
	}
	check := func(row int, class, title string, from, until float64) {
		t.Helper()
		found := rows[row].with(class, title)
		if len(found) != 1 {
			t.Fatalf("%d times %s %q in row %d, want it once", len(found), class, title, row)
		}
		near(title+": its beginning", found[0].number(t, "x"), left+(from-float64(30*row))*scale)
		near(title+": its width", found[0].number(t, "width"), (until-from)*scale)
	}
	check(0, "lead", "A leads with token 1:", 1, 5)
	check(0, "orphan", "0:05.000 to 0:06.600", 5, 6.6)
	check(0, "lead", "C leads with token 3:", 10.15, 15.8)
	check(0, "lead", "C leads with token 4:", 21, 30)
	check(1, "lead", "C leads with token 4:", 30, 30.8)
	check(0, "gap", "2 s; takeover", 5, 7)
	check(0, "gap", "5.20 s; takeover; a candidate could have led for the last 1 s", 15.8, 21)
	check(0, "storefault", "server stopped", 14, 20)
	check(1, "overlap", "two valid leases: C (4) and D (5), 0:30.300 to 0:30.800, 500 ms", 30.3, 30.8)
	for _, want := range []string{"1 s", "2 s", "100 ms", "5.20 s"} {
		if !slices.ContainsFunc(rows[0].all("text", "length"), func(n *node) bool { return n.text == want }) {
			t.Errorf("the length %q is not written in the first row", want)
		}
	}
	if texts := rows[1].all("text", "bad"); len(texts) != 1 || texts[0].text != "overlap 500 ms" {
		t.Error("the length of the overlap is not written")
	}
}

// A long campaign stays small and readable: texts do not touch each other, and
// what is quiet is folded, and nothing else.
func TestPageOfALongCampaign(t *testing.T) {
	h, problems := campaign(30*time.Minute, true)
	text, root := draw(t, h, problems, About{Seed: 4711, Notes: []string{"a note"}})
	if len(text) > 3<<20 {
		t.Errorf("the page has %d bytes, want at most 3 MB", len(text))
	}
	if n := len(root.all("section", "line")); n != 7 {
		t.Errorf("%d time lines, want 7", n)
	}
	if !strings.Contains(pageStyle, "svg text { font-size: 10.5px;") || rowWidth > 340 {
		t.Error("texts may be too small on a phone of 360 px")
	}
	rows, folded := root.all("svg", "row"), 0
	for _, row := range rows {
		type box struct {
			x, until, y float64
			text        string
		}
		var boxes []box
		height := 0.0
		if _, err := fmt.Sscanf(row.attrs["viewBox"], "0 0 340 %f", &height); err != nil {
			t.Fatal(err)
		}
		for _, n := range row.all("text", "") {
			w := widthOf(n.text)
			b := box{x: n.number(t, "x"), y: n.number(t, "y"), text: n.text}
			switch n.attrs["text-anchor"] {
			case "middle":
				b.x -= w / 2
			case "end":
				b.x -= w
			}
			b.until = b.x + w
			if b.x < -1 || b.until > rowWidth || b.y > height {
				t.Errorf("%q leaves its row", b.text)
			}
			for _, o := range boxes {
				if b.x < o.until && o.x < b.until && max(b.y, o.y)-min(b.y, o.y) < 9 {
					t.Errorf("%q and %q touch each other in %s", b.text, o.text, row.up.attrs["id"])
				}
			}
			boxes = append(boxes, b)
		}
		if row.up.name == "details" {
			folded++
			for i, n := range row.up.up.nodes[1:] {
				if n.name == "details" && row.up.up.nodes[i].name == "details" {
					t.Fatalf("%s is quiet and so is what is before it: they should be folded together", n.attrs["id"])
				}
			}
			for _, class := range []string{"gap", "overlap", "broken", "stop", "orphan", "problem", "m-killed", "m-lost", "m-resigned", "m-refused"} {
				if len(row.all("", class)) > 0 {
					t.Errorf("a folded row has a %s in it: %s", class, row.attrs["aria-label"])
				}
			}
		}
	}
	if folded < 20 || folded > len(rows)*3/4 {
		t.Errorf("%d of %d rows are folded", folded, len(rows))
	}
	verdict := root.all("header", "bad")
	if len(verdict) != 1 {
		t.Fatal("the page does not show that something is wrong")
	}
	if len(root.all("ul", "findings")[0].all("li", "")) != 3 {
		t.Error("the page does not list the problem, the overlap and the stale write")
	}
}

// A row is quiet only if nothing in it is worth a look.
func TestQuiet(t *testing.T) {
	others := map[history.Kind]bool{}
	for _, k := range []history.Kind{history.Renewed, history.Checked, history.Observed, history.Writing, history.Wrote, history.Accepted, history.Stalled} {
		others[k] = true
	}
	for _, k := range []history.Kind{
		history.Opened, history.Waits, history.Acquired, history.Renewed, history.Checked, history.Ended, history.Canceled, history.Released,
		history.Trouble, history.Denied, history.Foreign, history.Observed, history.Writing, history.Wrote, history.Refused, history.Failed, history.Stalled, history.Fatal,
		history.Accepted, history.Rejected, history.Started, history.Killed, history.Stopped, history.Continued, history.Terminated,
		history.Exited, history.Fault, history.Healed, history.Removed, history.Restored, history.Spoiled,
	} {
		s := newScript("etcd", "one")
		s.tell(0, "A", history.Acquired, token(1), valid(200_000))
		s.tell(0, "B", history.Opened)
		s.tell(40_000, "B", k)
		s.tell(190_000, "A", history.Checked, token(1), valid(10_000))
		story := stories(s.h, nil)[0]
		if quiet := story.quiet(ms(30_000), ms(60_000)); quiet != others[k] {
			t.Errorf("a row with nothing but %s is quiet: %v", k, quiet)
		}
	}
	for name, c := range map[string]struct {
		tell  func(*script)
		quiet bool
	}{
		"a leader":     {func(*script) {}, true},
		"nobody leads": {func(s *script) { s.tell(10_000, "A", history.Ended, token(1), detail("lost: x")) }, false},
		"a fault":      {func(s *script) { s.tell(10_000, "", history.Fault, detail("slow")) }, false},
		"two leaders":  {func(s *script) { s.tell(10_000, "B", history.Acquired, token(2), valid(100_000)) }, false},
		"a stale write": {func(s *script) {
			s.tell(20, "A", history.Accepted, token(2))
			s.tell(40_000, "A", history.Accepted, token(1))
		}, false},
		"healed earlier": {func(s *script) {
			s.tell(10_000, "", history.Fault, detail("slow"))
			s.tell(11_000, "", history.Healed, detail("slow"))
		}, true},
	} {
		s := newScript("etcd", "one")
		s.tell(0, "A", history.Acquired, token(1), valid(200_000))
		s.tell(0, "B", history.Opened)
		c.tell(s)
		s.tell(190_000, "B", history.Observed)
		if quiet := stories(s.h, nil)[0].quiet(ms(30_000), ms(60_000)); quiet != c.quiet {
			t.Errorf("%s: the row is quiet: %v, want %v", name, quiet, c.quiet)
		}
	}
	s := newScript("etcd", "one")
	s.tell(0, "A", history.Acquired, token(1), valid(200_000))
	s.tell(190_000, "A", history.Checked)
	if stories(s.h, []Problem{{Election: "one", At: ms(40_000)}})[0].quiet(ms(30_000), ms(60_000)) {
		t.Error("a row with a problem is quiet")
	}
}

// A token for which there is no room is cut, and it can be seen that it is.
func TestFitting(t *testing.T) {
	for room, want := range map[float64]string{200: "1795266005054902", 60: "…054902", 40: "…4902", 32: "…902", 20: ""} {
		if got := fitting(1795266005054902, room); got != want {
			t.Errorf("in %v units is written %q, want %q", room, got, want)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	draw(t, &history.History{}, nil, About{})
	_, root := draw(t, &history.History{Elections: []history.Election{{Store: "etcd", Name: "one"}}}, nil, About{})
	if len(root.all("header", "bad")) != 1 {
		t.Error("a history without an election is called good")
	}
}

// What belongs to no election of the history is shown all the same.
func TestPageOfUnknownElections(t *testing.T) {
	s := newScript("etcd", "one")
	s.tell(0, "A", history.Acquired, token(1), valid(1000))
	s.name = "two"
	s.tell(0, "A", history.Acquired, token(1), valid(1000))
	_, root := draw(t, s.h, []Problem{{Election: "three", Rule: "r", Text: "wrong"}}, About{})
	if n := len(root.all("section", "line")); n != 3 {
		t.Errorf("%d time lines, want 3", n)
	}
	if n := len(root.all("ul", "findings")[0].all("li", "")); n != 1 {
		t.Errorf("%d findings, want 1", n)
	}
}
