// Package protected has a file that defends itself by fencing tokens: the kind
// of resource that a leader should write to.
package protected

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/elector-go/elector"
)

// A File is a text file whose first line is the highest token that it has
// seen. Each access compares with it, and raises it, under one lock with what
// is read or written, so no writer with a higher token can come in between. It
// outlives the processes that write to it, and the token with it.
type File struct {
	Path string
}

// The first line has a fixed width, so that it can be replaced in place. A
// token has at most 16 digits.
const (
	header    = "highest token %016d\n"
	headerLen = len("highest token ") + 16 + 1
)

// Read returns the lines under the caller's token. From then on no older
// writer can change them; a new leader reads with it where its predecessor
// stopped. Reading first and showing the token with the first write would be
// too late: an old leader could still write in between.
//
// It returns elector.ErrStale if a higher token has been seen. It waits for
// other processes that are reading or writing.
func (f *File) Read(token elector.Token) ([]string, error) {
	var content []byte
	err := f.access(token, func(file *os.File) (err error) {
		content, err = io.ReadAll(file)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lines(content), nil
}

// Append adds a line under the caller's token. When it returns without error
// the line is on disk; when it returns elector.ErrStale nothing was written. It
// waits for other processes that are reading or writing.
func (f *File) Append(token elector.Token, line string) error {
	return f.access(token, func(file *os.File) error {
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		if _, err := io.WriteString(file, line+"\n"); err != nil {
			return err
		}
		return file.Sync()
	})
}

// access calls do with the file placed after its first line, unless the token
// is stale.
func (f *File) access(token elector.Token, do func(*os.File) error) error {
	if token == 0 || token > elector.MaxToken {
		return fmt.Errorf("%s: %w: %d is not a fencing token", f.Path, elector.ErrInvalid, uint64(token))
	}
	file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close() // and with it the lock
	if err := lock(file); err != nil {
		return fmt.Errorf("locking %s: %w", f.Path, err)
	}
	highest, err := readHeader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if token < highest {
		return fmt.Errorf("%s: token %d: %w: token %d has been here since", f.Path, token, elector.ErrStale, highest)
	}
	if token > highest {
		if _, err := file.WriteAt(fmt.Appendf(nil, header, uint64(token)), 0); err != nil {
			return err
		}
		// The token must not be forgotten if the machine crashes and the
		// line that follows is not.
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if _, err := file.Seek(int64(headerLen), io.SeekStart); err != nil {
		return err
	}
	return do(file)
}

// readHeader returns the highest token, 0 for a new file.
func readHeader(file *os.File) (elector.Token, error) {
	line := make([]byte, headerLen)
	n, err := io.ReadFull(file, line)
	if n == 0 && err == io.EOF {
		return 0, nil
	}
	var token uint64
	if _, scanErr := fmt.Sscanf(string(line), header, &token); err != nil || scanErr != nil {
		return 0, fmt.Errorf("its first line is not a fencing token; is it another program's file?")
	}
	return elector.Token(token), nil
}

func lines(content []byte) []string {
	text := strings.TrimSuffix(string(content), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
