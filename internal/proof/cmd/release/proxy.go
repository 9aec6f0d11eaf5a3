package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/elector-go/elector/internal/modules"
)

// A proxy is a folder that the go command takes as a module proxy, with the
// modules of a clone at one version.
type proxy struct{ dir, clone, version string }

// tag is what the go command looks for in the repository.
func (p *proxy) tag(m modules.Module) string { return path.Join(m.Dir, p.version) }

func (p *proxy) add(m modules.Module) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	versions := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	if taken, err := git(p.clone, "tag", "--list", p.tag(m)); err != nil || taken != "" {
		return fmt.Errorf("the tag %s exists: rehearse the next version", p.tag(m))
	}
	gomod, err := os.ReadFile(filepath.Join(p.clone, m.Dir, "go.mod"))
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"list":              p.version + "\n",
		p.version + ".info": fmt.Sprintf(`{"Version":%q}`, p.version),
		p.version + ".mod":  string(gomod),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(versions, p.version+".zip"))
	if err != nil {
		return err
	}
	err = zip.CreateFromVCS(archive, module.Version{Path: m.Path, Version: p.version}, p.clone, "HEAD", strings.TrimPrefix(m.Dir, "."))
	if closed := archive.Close(); err == nil {
		err = closed
	}
	return err
}
