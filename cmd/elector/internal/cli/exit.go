package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/cmd/elector/internal/doctor"
)

// Exit codes, of sysexits.h where it has one.
const (
	exitUsage         = 64
	exitUnavailable   = 69
	exitLost          = 70
	exitHeld          = 75
	exitDenied        = 77
	exitMisconfigured = 78
	exitNotExecutable = 126
	exitNotFound      = 127

	exitVacant = 3
	exitLapsed = 4
	exitSame   = 5 // resign: the same leader leads again
	exitOther  = 6 // resign: not the candidate of --to
)

const exitCodes = `Exit codes: 0 done; 64 wrong usage; 69 the store is not available; 70 the lease
was lost; 75 another candidate holds the election; 77 the store denies access;
78 the store is not set up as it must be.`

// An exitCode is an error with an exit code. Without an error of its own nothing
// is printed.
type exitCode struct {
	code int
	err  error
}

// Error implements error.
func (e exitCode) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the error.
func (e exitCode) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return exitCode{exitUsage, fmt.Errorf(format, args...)}
}

// codeOf returns the exit code for an error.
func codeOf(err error) int {
	var code exitCode
	if errors.As(err, &code) {
		return code.code
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{elector.ErrName, exitUsage}, {elector.ErrInvalid, exitUsage}, {elector.ErrURL, exitUsage}, {elector.ErrUnknownScheme, exitUsage},
		{elector.ErrDenied, exitDenied},
		{elector.ErrMisconfigured, exitMisconfigured}, {elector.ErrReadOnly, exitMisconfigured}, {elector.ErrForeignRecord, exitMisconfigured},
		{doctor.ErrNoOwner, exitVacant},
		{elector.ErrLost, exitLost}, {elector.ErrHeld, exitHeld},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return exitUnavailable
}

// forOperators replaces advice for programmers, who import backends.
var forOperators = strings.NewReplacer("; import the backend that serves it", "", ": imported are ", ": this program knows ", "(imported are ", "(this program knows ")

// oneLine returns the error as one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// brief is the error on one line, without what each line of run has: that it is
// elector's, and the election.
func brief(err error) string {
	if e := (*elector.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return plain(strings.TrimPrefix(oneLine(err), "elector: "))
}
