package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// An archive has nothing of the machine and of the moment, and its folders before what is
// in them.
func TestTarball(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	files := []file{{"b/c/tool", 0o755, []byte("tool")}, {"a", 0o644, []byte("text")}}
	packed, err := tarball(files, at)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" {
			t.Errorf("%s: %v, %d:%d, %s:%s", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
	}
	if want := []string{"a", "b/", "b/c/", "b/c/tool"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	slices.Reverse(files)
	again, err := tarball(files, at)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the order in which files are given changes the archive: %v", err)
	}
}

func TestZippedNamesNothing(t *testing.T) {
	packed, err := zipped([]byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	// RFC 1952: no flag for a name, and no time.
	if header := packed[3:8]; !bytes.Equal(header, make([]byte, 5)) {
		t.Errorf("flags and time are %x", header)
	}
}

// In Debian's order ~ comes before the end of a version, and + after it.
func TestDebianVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0":                      "0.1.0",
		"v0.1.0-rc.1":                 "0.1.0~rc.1",
		"v0.1.0-rc.1-3-g135a8a6":      "0.1.0~rc.1.3.g135a8a6",
		"v0.1.0-12-g135a8a6":          "0.1.0+12.g135a8a6",
		"v0.1.0-12-g135a8a6-dirty":    "0.1.0+12.g135a8a6.dirty",
		"v0.1.0-dirty":                "0.1.0+dirty",
		"135a8a6":                     "0~135a8a6",
		"f35a8a6-dirty":               "0~f35a8a6.dirty",
		"vendored":                    "0~vendored",
		"v10.20.30-alpha-of-many.3-x": "10.20.30~alpha.of.many.3.x",
	} {
		if got := debianVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// A bill names this repository's modules as users know them, and nothing of the tool's
// build.
func TestSettle(t *testing.T) {
	const raw = `{
		"metadata": {"tools": [{"vendor": "CycloneDX", "name": "cyclonedx-gomod", "hashes": [{"content": "differs"}]}]},
		"components": [
			{"name": "../..", "version": "(devel)", "bom-ref": "pkg:golang/../..@(devel)?type=module"},
			{"name": "../../b", "version": "(devel)", "bom-ref": "pkg:golang/../../b@(devel)?type=module"},
			{"name": "example.test/other", "version": "v1.0.0", "hashes": [{"content": "kept"}]}],
		"dependencies": [{"ref": "x", "dependsOn": ["pkg:golang/../../b@(devel)?type=module"]}]}`
	got, err := settle([]byte(raw), map[string]string{"../..": "example.test/root", "../../b": "example.test/root/b"}, "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
		"metadata": {"tools": [{"vendor": "CycloneDX", "name": "cyclonedx-gomod"}]},
		"components": [
			{"name": "example.test/root", "version": "v0.2.0", "bom-ref": "pkg:golang/example.test/root@v0.2.0?type=module"},
			{"name": "example.test/root/b", "version": "v0.2.0", "bom-ref": "pkg:golang/example.test/root/b@v0.2.0?type=module"},
			{"name": "example.test/other", "version": "v1.0.0", "hashes": [{"content": "kept"}]}],
		"dependencies": [{"ref": "x", "dependsOn": ["pkg:golang/example.test/root/b@v0.2.0?type=module"]}]}`
	if plain(t, string(got)) != plain(t, want) {
		t.Errorf("got %s", got)
	}
}

func plain(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The version is that of the root, the times are the commit's, and a changed tree is not
// released.
func TestIdentify(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("SOURCE_DATE_EPOCH", "")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "test")
		t.Setenv("GIT_"+who+"_EMAIL", "test@example.test")
		t.Setenv("GIT_"+who+"_DATE", "1700000000 +0100")
	}
	git := func(args ...string) {
		t.Helper()
		if _, err := output(exec.Command("git", append([]string{"-C", root}, args...)...)); err != nil {
			t.Fatal(err)
		}
	}
	change := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(given, want string) {
		t.Helper()
		r := &release{root: root}
		if err := r.identify(given); err != nil || r.version != want || r.time.Unix() != 1_700_000_000 {
			t.Errorf("version %q, time %v, %v, want %q", r.version, r.time, err, want)
		}
	}
	git("init", "--quiet")
	change("a")
	git("add", ".")
	git("commit", "--quiet", "-m", "all")
	git("tag", "cmd/tool/v0.9.0")
	hash, err := output(exec.Command("git", "-C", root, "rev-parse", "--short", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	expect("", strings.TrimSpace(string(hash)))
	git("tag", "v0.1.0")
	expect("", "v0.1.0")
	expect("v0.2.0", "v0.2.0")
	change("b")
	expect("", "v0.1.0-dirty")
	if err := (&release{root: root}).identify("v0.2.0"); err == nil || !strings.Contains(err.Error(), "M file") {
		t.Errorf("a changed tree is released: %v", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := (&release{root: root}).identify(""); err == nil {
		t.Error("a time that is no number is accepted")
	}
}

func TestLicenses(t *testing.T) {
	dir := t.TempDir()
	if _, err := licensesIn(dir); err == nil {
		t.Error("a module without a licence is accepted")
	}
	for _, name := range []string{"LICENSE-MIT.txt", "NOTICE", "license.go", "licensed"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\r\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	texts, err := licensesIn(dir)
	if want := []string{"LICENSE-MIT.txt\n", "NOTICE\n"}; err != nil || !slices.Equal(texts, want) {
		t.Errorf("found %q, %v, want %q", texts, err, want)
	}
}

// What an image refers to is in it, with the checksum that it is referred to by.
func TestImage(t *testing.T) {
	r := &release{out: t.TempDir(), version: "v0.1.0", commit: "c", time: time.Unix(1_700_000_000, 0).UTC()}
	p := platform{"linux", "arm64"}
	if err := r.image(p, []file{{"elector", 0o755, []byte("tool")}, {"man/elector.1", 0o644, nil}}); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(filepath.Join(r.out, r.name(p)+".image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	layout := files(t, bytes.NewReader(packed))
	blob := func(digest string) []byte {
		t.Helper()
		content, there := layout["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); !there || sum != digest {
			t.Fatalf("the blob %s is %s (%v)", digest, sum, there)
		}
		return content
	}
	type reference struct{ Digest string }
	var index struct{ Manifests []reference }
	var manifest struct {
		Config reference
		Layers []reference
	}
	var config struct {
		Architecture string
		Config       struct{ User string }
		Rootfs       struct {
			Diff []string `json:"diff_ids"`
		}
	}
	decode := func(b []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatal(err)
		}
	}
	decode(layout["index.json"], &index)
	decode(blob(index.Manifests[0].Digest), &manifest)
	decode(blob(manifest.Config.Digest), &config)
	unzipped, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	root, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(root)); config.Rootfs.Diff[0] != sum {
		t.Errorf("the layer is %s, and the configuration has %s", sum, config.Rootfs.Diff)
	}
	inside := files(t, bytes.NewReader(root))
	if string(inside["elector"]) != "tool" || config.Architecture != "arm64" {
		t.Errorf("the image of %s has %q", config.Architecture, inside)
	}
	if user, _, _ := strings.Cut(config.Config.User, ":"); !strings.Contains(string(inside["etc/passwd"]), ":"+user+":") {
		t.Errorf("the user %s is not in %q", user, inside["etc/passwd"])
	}
}

func files(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
