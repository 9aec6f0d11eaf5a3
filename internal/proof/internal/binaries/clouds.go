package binaries

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// FakeGCSPath returns where fake-gcs-server, which plays Google Cloud Storage,
// is or would be once it is fetched.
func FakeGCSPath() (string, error) { return within("fake-gcs-server-" + FakeGCSVersion) }

// FakeGCS returns the fetched fake-gcs-server.
func FakeGCS() (string, error) {
	path, err := FakeGCSPath()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}

// DynalitePath returns the folder where dynalite, which plays DynamoDB, is or
// would be once it is fetched: one with node_modules.
func DynalitePath() (string, error) { return within("dynalite-" + DynaliteVersion) }

// DynaliteScript is what Node.js runs, below DynalitePath.
var DynaliteScript = filepath.Join("node_modules", "dynalite", "cli.js")

// Dynalite returns the fetched dynalite's script.
func Dynalite() (string, error) {
	path, err := DynalitePath()
	if err != nil {
		return "", err
	}
	script := filepath.Join(path, DynaliteScript)
	_, err = os.Stat(script)
	return script, err
}

// Node returns the program that runs Dynalite and S3rver.
func Node() (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("the stand-ins for DynamoDB and S3 need Node.js 20 or later, and there is no node in PATH; install it (on Debian the package nodejs)")
	}
	return path, nil
}
