package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A root is the file system of an image, written as an archive while it is
// gathered from this machine's files. Everything in it belongs to root and can
// be read by all.
type root struct {
	tar   *tar.Writer
	there map[string]bool
}

func newRoot(w io.Writer) *root {
	return &root{tar: tar.NewWriter(w), there: map[string]bool{"/": true}}
}

// folder makes a folder, and those above it: one that the archive does not
// name could be entered by root alone.
func (r *root) folder(path string) error {
	if r.there[path] {
		return nil
	}
	if err := r.folder(filepath.Dir(path)); err != nil {
		return err
	}
	return r.header(&tar.Header{Typeflag: tar.TypeDir, Name: path, Mode: 0o755})
}

// ours makes a folder that the image's user may write to.
func (r *root) ours(path string) error {
	if err := r.folder(filepath.Dir(path)); err != nil {
		return err
	}
	return r.header(&tar.Header{Typeflag: tar.TypeDir, Name: path, Mode: 0o700, Uid: userID, Gid: userID})
}

// text makes a file with the content.
func (r *root) text(path, content string, mode int64) error {
	if err := r.folder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := r.header(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := io.WriteString(r.tar, content)
	return err
}

// open makes a folder that everybody may write to.
func (r *root) open(path string) error {
	return r.header(&tar.Header{Typeflag: tar.TypeDir, Name: path, Mode: 0o1777})
}

func (r *root) header(h *tar.Header) error {
	r.there[h.Name] = true
	h.Name = strings.TrimPrefix(h.Name, "/")
	return r.tar.WriteHeader(h)
}

// file copies a file of this machine.
func (r *root) file(from, path string) error {
	if r.there[path] {
		return nil
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := r.folder(filepath.Dir(path)); err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := r.header(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(r.tar, f)
	return err
}

// tree copies a folder of this machine, but for what skip names by its path
// below the folder. Links that lead out of the folder become what they point
// to; those that lead nowhere are left out.
func (r *root) tree(from, path string, skip func(string) bool) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		to := filepath.Join(path, below)
		switch {
		case skip != nil && skip(below):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return r.folder(to)
		case d.Type() == fs.ModeSymlink:
			return r.link(from, at, to)
		case d.Type().IsRegular():
			return r.file(at, to)
		}
		return nil // no program needs another's sockets
	})
}

func (r *root) link(tree, at, to string) error {
	target, err := os.Readlink(at)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(tree, filepath.Join(filepath.Dir(at), target)); err == nil && filepath.IsLocal(inside) && !filepath.IsAbs(target) {
		return r.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: to, Linkname: target, Mode: 0o777})
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.tree(real, to, nil)
	}
	return r.file(real, to)
}

// library is a line of ldd: "name => /path (0xaddress)" or "/path (0xaddress)".
var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// libraries copies what the program or shared library is loaded with, to the
// same paths, but for what lies in folders that are copied anyway.
func (r *root) libraries(of string, but ...string) error {
	ldd := exec.Command("ldd", of)
	ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(but, ":"))
	out, err := ldd.CombinedOutput()
	said := string(out)
	if strings.Contains(said, "not a dynamic executable") || strings.Contains(said, "statically linked") {
		return nil
	}
	if err == nil && strings.Contains(said, "not found") {
		err = errors.New("a library is missing")
	}
	if err != nil {
		return fmt.Errorf("ldd %s: %w:\n%s", of, err, strings.TrimSpace(said))
	}
	for _, match := range library.FindAllStringSubmatch(said, -1) {
		if slices.Contains(but, filepath.Dir(match[1])) {
			continue
		}
		if err := r.file(match[1], match[1]); err != nil {
			return err
		}
	}
	return nil
}

// program copies a program with its libraries.
func (r *root) program(from, path string) error {
	if err := r.file(from, path); err != nil {
		return err
	}
	return r.libraries(from)
}

// shell copies /bin/sh, which programs start others with.
func (r *root) shell() error {
	real, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		return err
	}
	return r.program(real, "/bin/sh")
}
