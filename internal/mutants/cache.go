package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A cache is a build cache for mutants. What their builds leave is of no use after them,
// and of all mutants it would take gigabytes of the user's cache.
type cache struct {
	from, dir string
	pkg       string // of the last build
	builds    int    // since the last mirror
}

// newCaches returns some in a folder beside the user's, on the same disk, where they can
// share files.
func newCaches(count int) (dir string, all chan *cache, err error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "", nil, err
	}
	from := strings.TrimSpace(string(out))
	if dir, err = os.MkdirTemp(filepath.Dir(from), "elector-mutants-"); err != nil {
		return "", nil, err
	}
	all = make(chan *cache, count)
	for i := range count {
		all <- &cache{from: from, dir: filepath.Join(dir, strconv.Itoa(i))}
	}
	return dir, all, nil
}

// most is how many mutants are built between two mirrors.
const most = 20

// prepare is called before a mutant of pkg is built, after its unbroken tests were.
func (c *cache) prepare(pkg string) error {
	if pkg != c.pkg || c.builds >= most {
		if err := c.mirror(); err != nil {
			return fmt.Errorf("a build cache for mutants: %w", err)
		}
		c.pkg, c.builds = pkg, 0
	}
	c.builds++
	return nil
}

// mirror makes the cache have the files that the user's has, and no others.
func (c *cache) mirror() error {
	for i := range 256 {
		folder := fmt.Sprintf("%02x", i)
		from, dir := filepath.Join(c.from, folder), filepath.Join(c.dir, folder)
		there, err := files(from)
		if err != nil {
			return err
		}
		here, err := files(dir)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		for name := range here {
			if !there[name] {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
		for name := range there {
			if !here[name] {
				if err := os.Link(filepath.Join(from, name), filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) { // trimmed meanwhile
					return err
				}
			}
		}
	}
	return nil
}

// files returns the names of the files of a folder, if it exists.
func files(dir string) (map[string]bool, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	names := map[string]bool{}
	for _, entry := range all {
		if entry.Type().IsRegular() {
			names[entry.Name()] = true
		}
	}
	return names, nil
}
