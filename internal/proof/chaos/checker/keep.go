package checker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// Keep saves the events that show a violation, and beside them the whole
// history that they are from, and returns the path of the first. Load of either
// and Check find the violation again.
func Keep(dir string, h *history.History, v Violation) (path string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("a violation cannot be kept: %w", err)
	}
	name := fmt.Sprintf("%s-%s-%d", plain(v.Election), plain(v.Rule), v.At.Microseconds())
	small := &history.History{Events: v.Events}
	for _, e := range h.Elections {
		if e.Name == v.Election {
			small.Elections = append(small.Elections, e)
		}
	}
	path = filepath.Join(dir, name+".history")
	if err := errors.Join(small.Save(path), h.Save(filepath.Join(dir, name+"-whole.history"))); err != nil {
		return path, fmt.Errorf("a violation cannot be kept: %w", err)
	}
	return path, nil
}

// plain makes a part of a file's name.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
}
