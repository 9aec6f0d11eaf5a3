// Package examples has files to copy.
package examples

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestYAML(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(bytes.NewReader(content))
		for {
			var object struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
				Metadata   struct{ Name string }
				Spec       map[string]any
			}
			if err := d.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil || object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "" || object.Spec == nil {
				t.Errorf("%s: %+v, %v", file, object, err)
				break
			}
		}
	}
}

func TestDockerfile(t *testing.T) {
	content, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		switch instruction, rest, _ := strings.Cut(line, " "); instruction {
		case "FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT":
			if rest == "" {
				t.Errorf("%q has no arguments", line)
			}
		default:
			if line != "" && line[0] != '#' {
				t.Errorf("%q is no instruction", line)
			}
		}
	}
}

// systemd is asked where there is one; the file is read everywhere.
func TestUnit(t *testing.T) {
	content, err := os.ReadFile("invoices.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(content), "\n") {
		if line != "" && line[0] != '#' && line[0] != '[' && !strings.Contains(line, "=") {
			t.Errorf("%q is no setting", line)
		}
	}
	for _, want := range []string{"Type=notify", "KillMode=mixed", "SuccessExitStatus=143", "RestartPreventExitStatus=64\n"} {
		if !strings.Contains(string(content), "\n"+want+"\n") {
			t.Errorf("the unit lacks %s", want)
		}
	}
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not on this machine, so systemd is not asked")
		return
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "elector")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(dir, "invoices.service")
	text := strings.ReplaceAll(string(content), "/usr/local/bin/elector", program)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(systemd, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "invoices.service") {
		t.Errorf("%v: %s", err, out)
	}
}
