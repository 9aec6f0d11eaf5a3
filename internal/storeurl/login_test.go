package storeurl

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(text string) *url.URL {
		t.Helper()
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var login Login
	check := func(what, user, password, refused string) {
		t.Helper()
		u, p, err := login()
		if refused != "" {
			if err == nil || !strings.Contains(err.Error(), refused) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want an error about %s", what, err, refused)
			}
			return
		}
		if u != user || p != password || err != nil {
			t.Errorf("%s: %q %q %v", what, u, p, err)
		}
	}
	of := func(ctx context.Context, text, passwordFile string) {
		t.Helper()
		l, err := LoginOf(ctx, parse(text), passwordFile)
		if err != nil {
			t.Fatal(err)
		}
		login = l
	}

	of(t.Context(), "mysql://me:secret@h/db", "")
	check("in the URL", "me", "secret", "")
	of(t.Context(), "mysql://h/db", "")
	check("nobody", "", "", "")

	write("secret\n")
	of(t.Context(), "mysql://me@h/db", file)
	check("in a file, with the end of a line", "me", "secret", "")
	write("secret 2\r\n")
	check("rotated", "me", "secret 2", "")
	write("\n")
	check("empty", "", "", "is empty")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("gone", "", "", "no such file")
	write("secret 3")
	check("there again", "me", "secret 3", "")

	text, failed := "mysql://me:secret@h/db?x=y\n", error(nil)
	ctx := WithSource(t.Context(), func() (string, error) { return text, failed })
	of(ctx, "mysql://me:secret@h/db?x=y", "")
	check("a URL of a file", "me", "secret", "")
	text = "mysql://you:secret4@h/db?x=y"
	check("rotated", "you", "secret4", "")
	text = "mysql://you:secret4@h2/db?x=y"
	check("another store", "", "", "another store")
	text = ""
	check("empty", "", "", "not a URL")
	text = "mysql://you:secret%zz@h/db"
	check("no URL", "", "", "not a URL")
	failed = errors.New("open /no: no such file")
	check("gone", "", "", "no such file")

	for _, c := range [][3]string{
		{"mysql://me:secret@h/db", file, "leave one out"},
		{"mysql://h/db", file, "needs a user"},
		{"mysql://me@h/db", file + ".no", "no such file"},
	} {
		if _, err := LoginOf(t.Context(), parse(c[0]), c[1]); err == nil || !strings.Contains(err.Error(), c[2]) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", c, err)
		}
	}
}
