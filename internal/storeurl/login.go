package storeurl

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// A Login returns who signs in at a store, as it is now: a backend calls it for each new
// connection, so that a password can be rotated.
type Login func() (user, password string, err error)

// source is the key of a context's value: what reads the URL again.
type source struct{}

// WithSource returns a context for an Opener of a URL that read has read, and reads again for
// each Login.
func WithSource(ctx context.Context, read func() (string, error)) context.Context {
	return context.WithValue(ctx, source{}, read)
}

// LoginOf returns the Login of a URL, whose password is in a file if the URL names one. It
// reads that.
func LoginOf(ctx context.Context, u *url.URL, passwordFile string) (Login, error) {
	user := u.User.Username()
	password, given := u.User.Password()
	read, again := ctx.Value(source{}).(func() (string, error))
	switch {
	case passwordFile != "" && given:
		return nil, errors.New("it has a password, and password_file names another; leave one out")
	case passwordFile != "" && user == "":
		return nil, errors.New("password_file needs a user; write user@host")
	case passwordFile != "":
		_, err := passwordIn(passwordFile)
		return func() (string, string, error) {
			password, err := passwordIn(passwordFile)
			return user, password, err
		}, err
	case again && u.User != nil:
		return func() (string, string, error) { return reread(u, read) }, nil
	}
	return func() (string, string, error) { return user, password, nil }, nil
}

// passwordIn returns what a file has, but for the end of its line. Its errors do not show the
// content.
func passwordIn(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("parameter password_file: %w", err)
	}
	password := strings.TrimRight(string(content), "\r\n")
	if password == "" {
		return "", fmt.Errorf("parameter password_file: %s is empty", file)
	}
	return password, nil
}

// reread returns the user and the password of a URL that was read again. It must name the
// same store.
func reread(u *url.URL, read func() (string, error)) (user, password string, err error) {
	text, err := read()
	if err != nil {
		return "", "", fmt.Errorf("reading the URL again: %w", err)
	}
	now, err := url.Parse(strings.TrimSpace(text))
	if err != nil || now.User == nil {
		return "", "", errors.New("reading the URL again: it is not a URL with a user (not shown, it may hold a password)")
	}
	if now.Scheme != u.Scheme || now.Host != u.Host || now.Path != u.Path {
		return "", "", errors.New("reading the URL again: it names another store now; restart the process to use that")
	}
	user = now.User.Username()
	password, _ = now.User.Password()
	return user, password, nil
}
