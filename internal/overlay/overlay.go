// Package overlay changes source files for one build, without touching the
// tree: see go help build, -overlay.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An Edit replaces a text that must be in a file exactly once: one that is gone
// is an error, so that edits are kept up to date with the code. Without Old it
// adds a file.
type Edit struct{ File, Old, New string }

// Write writes the changed files of the module in root, and the list of them,
// into dir, an absolute path, under names that begin with prefix. It returns
// the list's path, which is the value for -overlay.
func Write(root, dir, prefix string, edits []Edit) (list string, err error) {
	replace := map[string]string{}
	for i, e := range edits {
		path := filepath.Join(root, e.File)
		from := path
		if earlier, again := replace[path]; again {
			from = earlier
		}
		changed := e.New
		if e.Old != "" {
			text, err := os.ReadFile(from)
			if err != nil {
				return "", err
			}
			if n := strings.Count(string(text), e.Old); n != 1 {
				return "", fmt.Errorf("the text to change is %d times in %s, not once; bring the table up to date: %q", n, e.File, e.Old)
			}
			changed = strings.Replace(string(text), e.Old, e.New, 1)
		}
		to := filepath.Join(dir, fmt.Sprintf("%s-%d.go", prefix, i))
		if err := os.WriteFile(to, []byte(changed), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, prefix+".json")
	return list, os.WriteFile(list, content, 0o600)
}
