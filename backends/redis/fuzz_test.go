package redis

import (
	"errors"
	"net/url"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzContent: whatever a key holds, it is a record or foreign, and is read in bounded
// memory.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content)
	}
	server := newFake(f)
	b, err := server.open(f, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		server.set(func() { server.answers["GET"] = bulk(string(content)); server.asked = nil })
		var r backends.Record
		var err error
		check.Bounded(t, 1<<16+8*len(content), func() { r, err = b.Load(t.Context(), check.Election) })
		if check.Loaded(t, check.Election, r, err) && string(r.Version) != string(content) {
			t.Fatalf("the version of %q is %q", content, r.Version)
		}
	})
}

// FuzzURL: a URL is what the client library can use or is refused, and its password
// reaches the library and nothing else.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h/0", "h1,h2:6380/1?prefix=a:&durability=lossy&readonly=true", "", "/", "/0", "[::1]/0", "h:99999/0", "h:x/0", "h/0?prefx=x", "h/0?durability=a&durability=b",
		"h/0?durability=none", "h/0?prefix=a%0ab", "h/0?ca=a", "h/0?cert=a", "h/a%40b", "h#f")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"redis", "rediss"}, user, before, after, rest)
		if !ok {
			return
		}
		u, err := url.Parse(a.Text)
		if err != nil {
			return // backends.Open says nothing of it
		}
		c, to, options, err := parse(t.Context(), u)
		a.Hides(t, err, options.Prefix)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", a.Text, err)
			}
			return
		}
		a.Hides(t, backends.Redact(u)) // the name of the store from now on
		if user != "" {
			user, password, _ := c.CredentialsProviderContext(t.Context())
			a.Means(t, user, password)
		}
		if len(to.hosts) == 0 || c.DB < 0 {
			t.Fatalf("%q: %q, %+v", a.Text, to.hosts, c)
		}
	})
}
