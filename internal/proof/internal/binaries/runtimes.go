package binaries

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// NodePath returns the folder of the fetched Node.js, or where it would be: one with
// bin/node, and npm in the folder npm.
func NodePath() (string, error) { return within("node-" + NodeVersion) }

// Node returns the program that runs the servers of npm: the fetched one, or the one in
// PATH.
func Node() (string, error) {
	path, err := FetchedNode()
	if err == nil {
		return path, nil
	}
	if path, err = exec.LookPath("node"); err != nil {
		return "", errors.New("the stand-ins for DynamoDB, S3 and Azure Blob Storage need Node.js, and it is neither in .stores nor in PATH; run make stores")
	}
	return path, nil
}

// FetchedNode returns the fetched Node.js, which has npm beside it.
func FetchedNode() (string, error) {
	path, err := NodePath()
	if err != nil {
		return "", err
	}
	node := filepath.Join(path, "bin", "node")
	_, missing := os.Stat(NPMScript(path))
	return node, errors.Join(executable(node), missing)
}

// NPMScript is npm in the folder of a fetched Node.js, which runs it.
func NPMScript(folder string) string { return filepath.Join(folder, "npm", "bin", "npm-cli.js") }

// JavaPath returns the folder of the fetched Java runtime, or where it would be.
func JavaPath() (string, error) { return within("java-" + JavaVersion) }

// FetchedJava returns the java of the fetched runtime.
func FetchedJava() (string, error) {
	path, err := JavaPath()
	if err != nil {
		return "", err
	}
	java := filepath.Join(path, "bin", "java")
	return java, executable(java)
}

// Java returns the program that runs ZooKeeper: $JAVA_HOME's, the fetched one, or the
// one in PATH.
func Java() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path := filepath.Join(home, "bin", "java")
		return path, executable(path)
	}
	path, err := FetchedJava()
	if err == nil {
		return path, nil
	}
	if path, err = exec.LookPath("java"); err != nil {
		return "", errors.New("ZooKeeper needs Java, and it is neither in JAVA_HOME, nor in .stores, nor in PATH; run make stores")
	}
	return path, nil
}
