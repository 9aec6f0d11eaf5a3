package history

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// A Journal is where events are told to: a file that outlives the process, one
// JSON object in a line, each written by one call so that a process that is
// killed leaves nothing but whole lines.
type Journal struct {
	mutex sync.Mutex
	out   io.Writer
}

// NewJournal tells to out.
func NewJournal(out io.Writer) *Journal { return &Journal{out: out} }

// Tell writes an event. An event that cannot be told ends the process: what it
// does afterwards would be missing from the history.
func (j *Journal) Tell(e Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if _, err := j.out.Write(append(line, '\n')); err != nil {
		fmt.Fprintln(os.Stderr, "the journal cannot be written:", err)
		os.Exit(3)
	}
}

// Follow passes on what a Journal writes, until its end. A last line that is
// not whole is left out.
func Follow(r io.Reader, tell func(Event)) error {
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("a line of the journal is no event: %w: %s", err, line)
		}
		tell(e)
	}
}

// Save writes a history into a file, from which Load reads it. It is compressed
// if the path ends in .gz.
func (h *History) Save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(h.write(f, strings.HasSuffix(path, compressed)), f.Close())
}

const compressed = ".gz"

func (h *History) write(f io.Writer, compress bool) error {
	packed := gzip.NewWriter(f)
	if compress {
		f = packed
	}
	out := bufio.NewWriter(f)
	j := json.NewEncoder(out)
	err := j.Encode(h.Elections)
	for _, e := range h.Events {
		err = errors.Join(err, j.Encode(e))
	}
	err = errors.Join(err, out.Flush())
	if compress {
		err = errors.Join(err, packed.Close())
	}
	return err
}

// Load reads a file that Save has written.
func Load(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var content io.Reader = f
	if strings.HasSuffix(path, compressed) {
		if content, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	in := bufio.NewReader(content)
	first, err := in.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	h := &History{}
	if err := json.Unmarshal(first, &h.Elections); err != nil {
		return nil, fmt.Errorf("%s is no history: %w", path, err)
	}
	return h, Follow(in, func(e Event) { h.Events = append(h.Events, e) })
}
