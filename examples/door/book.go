package door

import (
	"errors"
	"os"
	"strings"
	"sync"
)

// A Book is a file of lines: the resource that the examples protect. It does not
// look at tokens.
type Book struct {
	Path  string
	mutex sync.Mutex
}

// Append adds a line. When it returns without error the line is on disk.
func (b *Book) Append(line string) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	file, err := os.OpenFile(b.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

// Read returns the lines.
func (b *Book) Read() (string, error) {
	content, err := os.ReadFile(b.Path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

// Count returns how many lines a text has.
func Count(text string) int { return strings.Count(text, "\n") }
