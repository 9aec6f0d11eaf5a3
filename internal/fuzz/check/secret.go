package check

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// letters and digits stand in the middle of every password. A part of a URL
// that is taken for a port can hold only digits.
const letters, digits = "hUnTeRtWoSeCrEt", "729146053818"

// An Address is a URL with a password in it, as people write them: with special
// characters that are not encoded, too.
type Address struct {
	Text           string
	user, password string
	encoded        bool // what is special in them was encoded in Text
	exact          bool // they are what is read of Text
	secret         string
}

// URLs adds seeds for the arguments of [NewAddress]. Each of what may follow the
// '@' is one, and the passwords that are known to be read as something else.
func URLs(f *testing.F, after ...string) {
	for form := range uint8(16) {
		f.Add(form, "app", "1", "x", after[0])
	}
	for _, part := range []string{"/", "?", "#", ":/", ":?", ":#", "@", "@h/", "@h?", "@h?a=", "@h#", "?a=", "&", ";", "%", "%zz", "%40", ":", "[", "]", `\`, "\n", " ", "//", "é", "\x00"} {
		for _, form := range []uint8{0, 1, 3} {
			f.Add(form, "app", "1"+part, "", after[0])
			f.Add(form, "app", "", part, after[0])
		}
	}
	for _, user := range []string{"us:er", "us@er", "us/?#er", "é", ""} {
		f.Add(uint8(2), user, "", "", after[0])
	}
	for _, rest := range after {
		f.Add(uint8(0), "app", "", "", rest)
		f.Add(uint8(1), "", "p", "q", rest)
	}
}

// NewAddress puts a URL together. It returns false if the user is written so
// that it is not one. The low bits of the form select how it is written.
func NewAddress(form uint8, schemes []string, user, before, after, rest string) (Address, bool) {
	a := Address{user: user, secret: letters}
	if form&1 != 0 {
		a.secret = digits
	}
	a.encoded = form&2 != 0
	a.password = before + a.secret + after
	a.exact = !strings.Contains(rest, "@") && (a.encoded || !strings.Contains(user, ":") && !strings.Contains(user+a.password, "%"))
	login := user + ":" + a.password
	if a.encoded {
		login = url.UserPassword(user, a.password).String()
	} else if strings.ContainsAny(user, "@/?#") {
		return a, false
	}
	slashes := "://"
	if form&12 == 12 {
		slashes = ":"
	}
	a.Text = schemes[int(form>>2)%len(schemes)] + slashes + login + "@" + rest
	// The files of TLS are read; these never end, or wait.
	return a, strings.Count(a.Text, a.secret) == 1 && !strings.Contains(rest, "/dev") && !strings.Contains(rest, "/proc")
}

// Hides fails if the password shows, in an error or in anything else that is
// meant to be read by others.
func (a Address) Hides(t testing.TB, shown ...any) {
	t.Helper()
	for _, s := range shown {
		if s != nil && strings.Contains(fmt.Sprint(s), a.secret) {
			t.Fatalf("the password of %q shows: %v", a.Text, s)
		}
	}
}

// Means fails if user and password were not read as they were written.
func (a Address) Means(t testing.TB, user, password string) {
	t.Helper()
	if a.exact && (user != a.user || password != a.password) {
		t.Fatalf("%q has the user %q and the password %q", a.Text, user, password)
	}
}

// Query is the password as a URL's only parameter. It returns false if a part
// of it would be the value of another.
func (a Address) Query(key string) (string, bool) {
	if a.encoded {
		return key + "=" + url.QueryEscape(a.password), true
	}
	return key + "=" + a.password, !strings.Contains(a.password, "=")
}

// Distinct fails if any two of the keys are the same, or one is above another
// in a tree whose parts are separated by '/'.
func Distinct(t testing.TB, keys ...string) {
	t.Helper()
	slices.Sort(keys)
	for i, key := range keys {
		for _, other := range keys[i+1:] {
			if key == other || strings.HasPrefix(other, key+"/") {
				t.Fatalf("two elections meet in the keys %q and %q", key, other)
			}
		}
	}
}

// Refuses checks that Open refuses each URL with ErrURL, whose text does not have the word
// "secret", which is or begins a password there.
func Refuses(t *testing.T, urls ...string) {
	t.Helper()
	for _, url := range urls {
		_, err := backends.Open(t.Context(), url)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: %v, want ErrURL", url, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a password in the error: %v", url, err)
		}
	}
}

// NotMade returns a check of what New returned: no backend, and ErrOptions, whose text names
// the field, or the client, and does not have the word "secret".
func NotMade[B comparable](t *testing.T, field string) func(made B, err error) {
	t.Helper()
	return func(made B, err error) {
		t.Helper()
		var none B
		if made != none || !errors.Is(err, backends.ErrOptions) || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v and error %v, want ErrOptions that names %s", made, err, field)
		}
	}
}

// OnlyReads checks a handle that New made for reading alone, before it has sent anything.
func OnlyReads(t *testing.T, b backends.Backend) {
	t.Helper()
	if !b.Describe().ReadOnly {
		t.Error("its Description does not have ReadOnly")
	}
	if _, err := b.Swap(t.Context(), Election, backends.Record{}, Good()); !errors.Is(err, backends.ErrReadOnly) {
		t.Errorf("Swap: got %v, want ErrReadOnly", err)
	}
}
