package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

const cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// bill writes which modules are in a binary, as CycloneDX has it.
func (r *release) bill(p platform, binary string) error {
	raw := filepath.Join(r.scratch, "bill.json")
	if err := r.tool(cyclonedx, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", r.version, "-output", raw, binary); err != nil {
		return err
	}
	content, err := os.ReadFile(raw)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	folders := map[string]string{} // of modules in this repository
	for _, m := range info.Deps {
		if m.Replace != nil {
			folders[m.Replace.Path] = m.Path
		}
	}
	if content, err = settle(content, folders, r.version); err != nil {
		return err
	}
	return r.write(r.name(p)+".cdx.json", content)
}

// settle gives modules that stand in folders of this repository their paths and the
// version, and leaves out the checksums of the tool, which are others on another machine.
func settle(content []byte, folders map[string]string, version string) ([]byte, error) {
	var bill map[string]any
	if err := json.Unmarshal(content, &bill); err != nil {
		return nil, err
	}
	var pairs []string
	for folder, path := range folders {
		pairs = append(pairs, "pkg:golang/"+folder+"@(devel)", "pkg:golang/"+path+"@"+version)
	}
	urls := strings.NewReplacer(pairs...)
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return urls.Replace(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			if path, ours := folders[text(v["name"])]; ours {
				v["name"], v["version"] = path, version
			}
			if text(v["vendor"]) == "CycloneDX" {
				delete(v, "hashes")
			}
			for key := range v {
				v[key] = walk(v[key])
			}
		}
		return v
	}
	walk(bill)
	var settled bytes.Buffer
	e := json.NewEncoder(&settled)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(bill)
	return settled.Bytes(), err
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
