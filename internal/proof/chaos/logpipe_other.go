//go:build !linux

package chaos

import "os"

// shorten does nothing: a pipe holds some pages.
func shorten(*os.File) {}
