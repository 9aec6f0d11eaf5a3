// Package diagnose recognises what a machine lacks in what programs print when they fail.
package diagnose

import (
	"regexp"
	"strings"
)

var known = []struct {
	sign   *regexp.Regexp
	advice string
}{
	{regexp.MustCompile(`(?i)no space left on device|\bENOSPC\b`),
		"the disk is full; free some gigabytes, or let ELECTOR_STORES_DIR, TMPDIR and GOCACHE name folders on another disk"},
	{regexp.MustCompile(`(?i)could not get lock|unable to lock|unable to acquire the dpkg`),
		"another process holds apt's lock; wait until it has ended, and run this again"},
	{regexp.MustCompile(`\b403\b|\bE403\b`),
		"a registry refuses a package (403); ask those who run it to allow the package"},
	{regexp.MustCompile(`(?i)no such host|server misbehaving|network is unreachable|no route to host|connection refused|connection timed out|i/o timeout|TLS handshake timeout|` +
		`temporary failure resolving|could not resolve|could not connect|cannot initiate the connection|\bENOTFOUND\b|\bEAI_AGAIN\b|\bECONNREFUSED\b|\bENETUNREACH\b|\bETIMEDOUT\b|module lookup disabled by GOPROXY=off`),
		"the network cannot be reached; connect this machine, or name a proxy or mirror (GOPROXY, npm's registry, apt's sources)"},
}

// Line returns, in one line, what is missing and what to do about it, or "" if the text
// has no sign of it.
func Line(text string) string {
	for _, k := range known {
		if k.sign.MatchString(text) {
			return k.advice
		}
	}
	return ""
}

// Failure writes what failed as one line, with what to do about it if that is known, and
// below it, indented, everything else that err says.
func Failure(what string, err error) string {
	text := strings.TrimSpace(err.Error())
	first, rest, _ := strings.Cut(text, "\n")
	if line := Line(text); line != "" {
		first, rest = line, text
	}
	if rest != "" {
		rest = "\n\t" + strings.ReplaceAll(strings.TrimSpace(rest), "\n", "\n\t")
	}
	return what + ": " + first + rest
}
