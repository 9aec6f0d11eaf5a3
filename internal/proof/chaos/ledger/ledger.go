// Package ledger keeps a line for each campaign in a file, so that what they show adds up
// over days and restarts.
package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// An Entry is one campaign.
type Entry struct {
	Time       time.Time // when it ended
	Commit     string    // what was tested
	Seed       uint64
	Duration   time.Duration // that it took
	Places     []string
	Faults     int // that struck
	Elections  int // acquisitions
	Overlaps   int // of valid leases
	Stale      int // stale writes accepted
	Violations int
	Problem    string // why the campaign did not pass; empty if it did
}

// Bad reports whether the campaign found what must not be.
func (e Entry) Bad() bool { return e.Violations+e.Overlaps+e.Stale > 0 }

// Passed reports whether the campaign came to its end and showed what it is for.
func (e Entry) Passed() bool { return e.Problem == "" && !e.Bad() }

const columns = "time\tcommit\tseed\tduration\tplaces\tfaults\telections\toverlaps\tstale\tviolations\tproblem"

func (e Entry) line() string {
	fields := []string{
		e.Time.UTC().Format(time.RFC3339), e.Commit, fmt.Sprint(e.Seed), e.Duration.String(), strings.Join(e.Places, ","),
		fmt.Sprint(e.Faults), fmt.Sprint(e.Elections), fmt.Sprint(e.Overlaps), fmt.Sprint(e.Stale), fmt.Sprint(e.Violations), e.Problem,
	}
	for i, f := range fields {
		fields[i] = strings.Join(strings.Fields(f), " ") // no tab and no newline
	}
	return strings.Join(fields, "\t") + "\n"
}

func parse(line string) (e Entry, err error) {
	fields := strings.Split(line, "\t")
	if want := strings.Count(columns, "\t") + 1; len(fields) != want {
		return e, fmt.Errorf("%d columns, want %d", len(fields), want)
	}
	var errs [4]error
	e.Commit, e.Problem = fields[1], fields[10]
	e.Time, errs[0] = time.Parse(time.RFC3339, fields[0])
	e.Seed, errs[1] = strconv.ParseUint(fields[2], 10, 64)
	e.Duration, errs[2] = time.ParseDuration(fields[3])
	if fields[4] != "" {
		e.Places = strings.Split(fields[4], ",")
	}
	for i, to := range []*int{&e.Faults, &e.Elections, &e.Overlaps, &e.Stale, &e.Violations} {
		n, err := strconv.ParseUint(fields[5+i], 10, 31)
		*to, errs[3] = int(n), errors.Join(errs[3], err)
	}
	return e, errors.Join(errs[:]...)
}

// Append adds a campaign to the file, which it creates if it is missing, and returns once
// the line is durable. A line that an earlier writer has left unfinished stays by itself.
func Append(path string, e Entry) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	line := e.line()
	if size := info.Size(); size == 0 {
		line = columns + "\n" + line
	} else {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	return f.Sync()
}

// Read returns the campaigns of the file in its order, and what is wrong with each line
// that is none. A missing file has none.
func Read(path string) (all []Entry, bad []error, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text, whole := strings.CutSuffix(string(line), "\n")
		if text == "" || text == columns {
			continue
		}
		e, err := parse(text)
		if err == nil && !whole {
			err = errors.New("it has no end")
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %.60q: %w", path, number, text, err))
			continue
		}
		all = append(all, e)
	}
	return all, bad, nil
}

// Next returns the seed of the next campaign: the one after the highest, or first if there
// is none.
func Next(all []Entry, first uint64) uint64 {
	if len(all) == 0 {
		return first
	}
	highest := uint64(0)
	for _, e := range all {
		highest = max(highest, e.Seed)
	}
	return highest + 1
}

// A Sum is what campaigns come to.
type Sum struct {
	Campaigns                                      int
	Failed                                         int // that did not pass
	Time                                           time.Duration
	Faults, Elections, Overlaps, Stale, Violations int
}

// Total adds campaigns up.
func Total(all []Entry) (s Sum) {
	for _, e := range all {
		s.Campaigns++
		if !e.Passed() {
			s.Failed++
		}
		s.Time += e.Duration
		s.Faults += e.Faults
		s.Elections += e.Elections
		s.Overlaps += e.Overlaps
		s.Stale += e.Stale
		s.Violations += e.Violations
	}
	return s
}
