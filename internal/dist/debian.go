package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The newest whose modules can all be had from Go's proxy.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// A content is one file of a package, as nfpm's configuration has it.
type content struct {
	Source      string `json:"src"`
	Destination string `json:"dst"`
	Info        struct {
		Mode  int64  `json:"mode"`
		Owner string `json:"owner"`
		Group string `json:"group"`
	} `json:"file_info"`
}

// debian writes the Debian package.
func (r *release) debian(p platform, files []file) error {
	version, stage := debianVersion(r.version), filepath.Join(r.scratch, r.name(p), "deb")
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	var contents []content
	var copyright []byte
	add := func(destination string, f file) error {
		c := content{Source: filepath.Join(stage, fmt.Sprint(len(contents))), Destination: destination}
		c.Info.Mode, c.Info.Owner, c.Info.Group = f.mode, "root", "root"
		contents = append(contents, c)
		return os.WriteFile(c.Source, f.content, 0o644)
	}
	for _, f := range files {
		dir, name := path.Split(f.name)
		destination, err := "", error(nil)
		switch {
		case name == "elector":
			destination = "/usr/bin/elector"
		case strings.HasPrefix(name, "LICENSE"):
			copyright = append(copyright, f.content...)
			continue
		case dir == "man/":
			destination = "/usr/share/man/man1/" + name + ".gz"
			f.content, err = zipped(f.content)
		case name == "elector.bash":
			destination = "/usr/share/bash-completion/completions/elector"
		case name == "elector.fish":
			destination = "/usr/share/fish/vendor_completions.d/elector.fish"
		case name == "_elector":
			destination = "/usr/share/zsh/vendor-completions/_elector"
		case dir == "examples/":
			destination = "/usr/share/doc/elector/examples/" + name
			f.content = bytes.ReplaceAll(f.content, []byte("/usr/local/bin/elector "), []byte("/usr/bin/elector "))
		default:
			return fmt.Errorf("the Debian package has no place for %s", f.name)
		}
		if err != nil {
			return err
		}
		if err := add(destination, f); err != nil {
			return err
		}
	}
	if err := add("/usr/share/doc/elector/copyright", file{mode: 0o644, content: copyright}); err != nil {
		return err
	}
	// JSON is YAML too.
	config, err := json.Marshal(map[string]any{
		"name": "elector", "arch": p.arch, "platform": p.system, "version": version, "version_schema": "none",
		"mtime": r.time, "section": "admin", "priority": "optional", "license": "Apache-2.0",
		"maintainer": "The elector authors", "homepage": "https://github.com/elector-go/elector",
		"description": "leader election for commands and services\n" +
			"Runs a command on one machine at a time, on a store that the machines share:\n" +
			"etcd, ZooKeeper, Consul, NATS, PostgreSQL, MySQL, DynamoDB, S3, Cloud Storage,\n" +
			"Azure Blob Storage, Kubernetes, or a folder.",
		"disable_globbing": true, "contents": contents,
	})
	if err != nil {
		return err
	}
	file := filepath.Join(stage, "nfpm.json")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return err
	}
	return r.tool(nfpm, "package", "--config", file, "--packager", "deb", "--target", filepath.Join(r.out, r.name(p)+".deb"))
}

var (
	released = regexp.MustCompile(`^v(\d[^-]*)(?:-(.+))?$`)
	later    = regexp.MustCompile(`^(\d+-g[0-9a-f]+(-dirty)?|dirty)$`)
)

// debianVersion is a version in Debian's order: a pre-release comes before its release,
// and a later commit after it. A commit without a tag comes before all.
func debianVersion(version string) string {
	parts := released.FindStringSubmatch(version)
	switch {
	case parts == nil:
		return "0~" + strings.ReplaceAll(version, "-", ".")
	case parts[2] == "":
		return parts[1]
	case later.MatchString(parts[2]):
		return parts[1] + "+" + strings.ReplaceAll(parts[2], "-", ".")
	}
	return parts[1] + "~" + strings.ReplaceAll(parts[2], "-", ".")
}
