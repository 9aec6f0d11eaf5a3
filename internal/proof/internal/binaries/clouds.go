package binaries

import (
	"os"
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

// AzuritePath returns the folder where azurite, which plays Azure Blob Storage, is
// or would be once it is fetched: one with node_modules.
func AzuritePath() (string, error) { return within("azurite-" + AzuriteVersion) }

// AzuriteScript is what Node.js runs, below AzuritePath.
var AzuriteScript = filepath.Join("node_modules", "azurite", "dist", "src", "blob", "main.js")

// Azurite returns the fetched azurite's script.
func Azurite() (string, error) {
	path, err := AzuritePath()
	if err != nil {
		return "", err
	}
	script := filepath.Join(path, AzuriteScript)
	_, err = os.Stat(script)
	return script, err
}
