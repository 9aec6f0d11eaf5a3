package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/bench/results"
)

// Groups is what was measured of groups that share partitions.
type Groups struct {
	Date                time.Time
	TTL                 time.Duration
	Members, Partitions int           // of a group; one member fewer but for the join and the leave
	Unit, RecordEvery   time.Duration // of work; between two records of a partition
	Stopped, Dark       int           // for how many TTLs a member stands still, and is cut off
	Rounds              int
	Libraries           []Library // Belief is the store
	Figures             []results.Figure
}

// Write writes the section of the page, in Markdown.
func (g *Groups) Write(w io.Writer) error {
	p := &page{}
	ttl := ttl(g.TTL)
	p.printf("### Groups side by side\n\n")
	p.printf("Written by `go run ./cmd/groups` in `bench`, about five minutes, on %s. See [README.md](README.md#groups-side-by-side).\n\n", g.Date.UTC().Format("2 January 2006"))
	p.printf("%d partitions, shared by %d processes, of which one is cut off, stopped and killed, and by one more that joins and leaves. Each is a child process. The TTL or session timeout is %s for all. ", g.Partitions, g.Members-1, ttl)
	p.printf("Members note on the machine's boot-time clock when they begin and end to work on a partition. A unit of work takes %s. With this library a member calls `lease.Check()` before each unit; a consumer does a unit for each record, of which a partition gets one every %s. A column \"callbacks\" goes by the time for which the consumer's library lets it have the partition, between its callbacks, whether there are records or not: work that does not come from the broker would go on for as long.\n\n", ms(g.Unit), ms(g.RecordEvery))
	p.printf("- **join**: a process starts. **leave**: it is told to end. **crash**: a process is killed (`kill -9`).\n")
	p.printf("- **stop and continue**: SIGSTOP, and SIGCONT after %s. While it stands still it does not work. **network cut**: nothing passes between a process and its store for %s; then its connections are reset, and it comes back. Moves are those away and back.\n", ttlTimes(g.Stopped, g.TTL), ttlTimes(g.Dark, g.TTL))
	p.printf("- \"Two at work\" counts the time in which two processes or more work on the same partition. A process that is stopped ends its unit of work when it goes on, whatever its library: that much only [fencing](../docs/fencing.md) can refuse. This library begins no further unit then. A consumer goes on until the broker has answered, which takes less than a millisecond here.\n")
	p.printf("- \"None at work\" is the time in a scene for which no process works on a partition, away and back together. \"Others that stand still\" do not move, and no process works on them for a time.\n")
	p.printf("- A cell is the median of the rounds, here %d, and in brackets the least and the most.\n\n", g.Rounds)
	p.printf("| | module | store | how it is used |\n|---|---|---|---|\n")
	for _, l := range g.Libraries {
		p.printf("| %s | %s %s | %s | %s |\n", escape(l.Name), escape(l.Module), escape(l.Version), escape(l.Belief), escape(l.Settings))
	}
	p.printf("\nThe stores are durable, as in [The machine](#the-machine). kfake is a broker in memory by franz-go's author: its answers take no disk.\n\n")
	var columns, rows []string
	for _, f := range g.Figures {
		if !slices.Contains(columns, f.Library) {
			columns = append(columns, f.Library)
		}
		if row := f.What + ": " + f.Unit; !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	p.printf("| |")
	for _, c := range columns {
		p.printf(" %s |", escape(c))
	}
	p.printf("\n|---|%s\n", strings.Repeat("--:|", len(columns)))
	for _, row := range rows {
		p.printf("| %s |", escape(strings.TrimSuffix(row, ": moves")))
		for _, c := range columns {
			i := slices.IndexFunc(g.Figures, func(f results.Figure) bool { return f.Library == c && f.What+": "+f.Unit == row })
			if i < 0 {
				p.printf(" |")
				continue
			}
			p.printf(" %s |", cell(rounded(g.Figures[i])))
		}
		p.printf("\n")
	}
	p.printf("\nWhat the rules of each make of it:\n\n")
	for _, line := range []string{
		"After a crash this library waits for C, 1.1 TTL after the last renewal was seen, because the owner trusts its lease for 0.9 TTL and both clocks may be wrong by a tenth. The broker waits for one session timeout after the last heartbeat, by its own clock alone, and nothing makes the owner stop before that.",
		"So in a network cut a process stops by itself here, and no partition has two owners. A consumer's library lets it have its partitions until the broker answers again, or until its own requests have failed for long enough. Its records stop at once.",
		"Moves of the elections are what the hash gives: the shares are not even, so that a join can move fewer partitions than an even one.",
		"An eager rebalance, as sarama's, takes all partitions away for a moment; cooperative-sticky and this library take away only those that move.",
	} {
		p.printf("- %s\n", line)
	}
	_, err := w.Write(p.Bytes())
	return err
}

// rounded rounds seconds to tenths of a millisecond.
func rounded(f results.Figure) results.Figure {
	if f.Unit != "s" {
		return f
	}
	f.Values = slices.Clone(f.Values)
	for i, v := range f.Values {
		f.Values[i] = math.Round(v*1e4) / 1e4
	}
	return f
}

func ttlTimes(n int, d time.Duration) string {
	return fmt.Sprintf("%g s", (time.Duration(n) * d).Seconds())
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
