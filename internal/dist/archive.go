package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is one of an archive, with slashes in its name.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarball returns an archive of the files and of their folders, in the order of their
// names. All belongs to root and has the same time.
func tarball(files []file, at time.Time) ([]byte, error) {
	files = slices.Clone(files)
	folders := map[string]bool{".": true}
	for _, f := range files {
		for dir := path.Dir(f.name); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
			files = append(files, file{name: dir + "/", mode: 0o755})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)),
			ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return packed.Bytes(), err
}

// zipped is what gzip -9n makes of the content: it names no file and no time.
func zipped(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// archive writes the files of a platform as a .tar.gz with one folder.
func (r *release) archive(p platform, files []file) error {
	inside := slices.Clone(files)
	for i := range inside {
		inside[i].name = r.name(p) + "/" + inside[i].name
	}
	packed, err := tarball(inside, r.time)
	if err != nil {
		return err
	}
	if packed, err = zipped(packed); err != nil {
		return err
	}
	return r.write(r.name(p)+".tar.gz", packed)
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// sums writes the checksums of all files, for sha256sum -c.
func (r *release) sums() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var list string
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		list += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), f.Name())
	}
	fmt.Print(list)
	return r.write("SHA256SUMS", []byte(list))
}
