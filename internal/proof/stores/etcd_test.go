package stores

import (
	"context"
	"testing"

	_ "github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/conformance"
)

func TestEtcd(t *testing.T) {
	s := obtain(t, Etcd)
	// Not of the test's context, which ends before clean-ups run.
	client, err := etcdClient(context.Background(), s.Address, s.Admin)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	const prefix = "/suite/"
	conform(t, Etcd, s.How, conformance.Harness{
		Open:         opener(s.URL + prefix),
		OpenReadOnly: readOnlyOpener(s.URL + prefix),
		OpenFaulty:   faulty(s, s.URL+prefix),
		Slow:         true,
		Raw: &conformance.Raw{
			Get: func(t testing.TB, name string) []byte {
				r, err := client.Get(t.Context(), prefix+name)
				must(t, err)
				if len(r.Kvs) == 0 {
					return nil
				}
				return append([]byte{}, r.Kvs[0].Value...)
			},
			Put: func(t testing.TB, name string, content []byte) {
				_, err := client.Put(t.Context(), prefix+name, string(content))
				must(t, err)
			},
			Delete: func(t testing.TB, name string) {
				_, err := client.Delete(t.Context(), prefix+name)
				must(t, err)
			},
		},
		Setups: etcdSetups(t),
	})
}

// etcdSetups are servers and logins that do not serve.
func etcdSetups(t *testing.T) map[string]func(testing.TB) error {
	secured, err := EtcdWithAuth(t.Context(), "/suite/")
	must(t, err)
	t.Cleanup(func() { must(t, secured.Stop()) })
	as := func(l Login, prefix string) func(testing.TB) error {
		return func(t testing.TB) error { return openError(t, l.In(secured.PasswordURL+prefix)) }
	}
	return map[string]func(testing.TB) error{
		"no server":        func(t testing.TB) error { return openError(t, "etcd://"+vacantAddress(t)) },
		"no login":         func(t testing.TB) error { return openError(t, secured.PasswordURL+"/suite/") },
		"a wrong password": as(Login{secured.User.User, "not-the-password"}, "/suite/"),
		"another's prefix": as(secured.User, "/other/"),
		"an unknown parameter": func(t testing.TB) error {
			return openError(t, secured.PasswordURL+"/suite/?consistency=serializable")
		},
	}
}
