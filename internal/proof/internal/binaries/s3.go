package binaries

import (
	"os"
	"path/filepath"
)

// GoFakeS3Name is gofakes3 with the change that it is built with.
const GoFakeS3Name = "gofakes3-" + GoFakeS3Version + "-copies"

// GoFakeS3Path returns where gofakes3, which plays Amazon S3, is or would be once it
// is built.
func GoFakeS3Path() (string, error) { return within(GoFakeS3Name) }

// GoFakeS3 returns the built gofakes3.
func GoFakeS3() (string, error) {
	path, err := GoFakeS3Path()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}

// VersityGWPath returns where versitygw, which serves a folder as S3, is or would be
// once it is built.
func VersityGWPath() (string, error) { return within("versitygw-" + VersityGWVersion) }

// VersityGW returns the built versitygw.
func VersityGW() (string, error) {
	path, err := VersityGWPath()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}

// S3rverPath returns the folder where s3rver, which ignores conditions, is or would be
// once it is fetched: one with node_modules.
func S3rverPath() (string, error) { return within("s3rver-" + S3rverVersion) }

// S3rverScript is what Node.js runs, below S3rverPath.
var S3rverScript = filepath.Join("node_modules", "s3rver", "bin", "s3rver.js")

// S3rver returns the fetched s3rver's script.
func S3rver() (string, error) {
	path, err := S3rverPath()
	if err != nil {
		return "", err
	}
	script := filepath.Join(path, S3rverScript)
	_, err = os.Stat(script)
	return script, err
}
