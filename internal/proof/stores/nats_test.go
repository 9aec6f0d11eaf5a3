//go:build nats

package stores

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/nats"
	"github.com/elector-go/elector/conformance"
	"github.com/elector-go/elector/internal/page"
)

// natsRaw reaches the records without the adapter. Not with the context of the test,
// which ends before clean-ups run.
func natsRaw(t *testing.T, address, bucket, prefix string) *conformance.Raw {
	t.Helper()
	r := NewNATSRecords(natsConn(t, address), bucket, prefix)
	ctx := context.Background()
	return &conformance.Raw{
		Get: func(t testing.TB, name string) []byte {
			content, err := r.Get(ctx, name)
			must(t, err)
			return content
		},
		Put:    func(t testing.TB, name string, content []byte) { must(t, r.Put(ctx, name, content)) },
		Delete: func(t testing.TB, name string) { must(t, r.Delete(ctx, name)) },
	}
}

func natsConn(t *testing.T, address string, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := NATSConnect(t.Context(), address, options...)
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func TestNATS(t *testing.T) {
	s := obtain(t, NATS)
	const prefix = "suite"
	url := s.URL + "?prefix=" + prefix
	conform(t, NATS, s.How, conformance.Harness{
		Open:         opener(url),
		OpenReadOnly: readOnlyOpener(url),
		OpenFaulty:   faulty(s, url),
		Slow:         true,
		Raw:          natsRaw(t, s.Address, natsBucket, prefix),
		Setups:       natsSetups(t, s),
	})
}

// natsSetups are servers and buckets that do not serve.
func natsSetups(t *testing.T, s *Store) map[string]func(testing.TB) error {
	setups := map[string]func(testing.TB) error{
		"no server":            func(t testing.TB) error { return openError(t, "nats://"+vacantAddress(t)+"/b") },
		"an unknown parameter": func(t testing.TB) error { return openError(t, s.URL+"?direct=true") },
		"no bucket":            func(t testing.TB) error { return openError(t, "nats://"+s.Address+"/nowhere") },
		"TLS":                  func(t testing.TB) error { return openError(t, "natss"+s.URL[len("nats"):]) },
		"too many replicas":    func(t testing.TB) error { return openError(t, "nats://"+s.Address+"/three?create=true&replicas=3") },
	}
	nc := natsConn(t, s.Address)
	js, err := jetstream.New(nc)
	must(t, err)
	for name, c := range map[string]jetstream.StreamConfig{
		"memory":  {Storage: jetstream.MemoryStorage},
		"max-age": {MaxAge: 3600e9},
		"discard": {MaxBytes: 1 << 20},
		"history": {MaxMsgsPerSubject: -1},
		"queue":   {Retention: jetstream.WorkQueuePolicy},
		"no-ack":  {NoAck: true},
		"small":   {MaxMsgSize: 100},
		"sealed":  {Sealed: true},
		"async":   {},
	} {
		setups["a bucket with "+name] = func(t testing.TB) error {
			c.Name, c.Subjects = "KV_"+name, []string{"$KV." + name + ".>"}
			if c.MaxMsgsPerSubject == 0 {
				c.MaxMsgsPerSubject = 1
			}
			switch name {
			case "async":
				must(t, natsCreateAsync(nc, c))
			case "sealed":
				c.Sealed = false
				_, err := js.CreateStream(t.Context(), c)
				must(t, err)
				c.Sealed = true
				_, err = js.UpdateStream(t.Context(), c)
				must(t, err)
			default:
				_, err := js.CreateStream(t.Context(), c)
				must(t, err)
			}
			return openError(t, "nats://"+s.Address+"/"+name)
		}
	}
	return setups
}

// natsCreateAsync makes a stream that acknowledges writes before it has written them.
func natsCreateAsync(nc *nats.Conn, c jetstream.StreamConfig) error {
	body, err := json.Marshal(map[string]any{"name": c.Name, "subjects": c.Subjects, "max_msgs_per_subject": 1, "persist_mode": "async", "retention": "limits", "storage": "file", "discard": "old", "num_replicas": 1, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_msg_size": -1})
	if err != nil {
		return err
	}
	m, err := nc.Request("$JS.API.STREAM.CREATE."+c.Name, body, enough)
	if err != nil {
		return err
	}
	var answer struct{ Error *struct{ Description string } }
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Error != nil {
		return fmt.Errorf("%s", m.Data)
	}
	return nil
}

// Processes of a new store that start at once all get the bucket.
func TestNATSCreatesAtOnce(t *testing.T) {
	createAtOnce(t, "nats://"+obtain(t, NATS).Address+"/fresh?create=true")
	c := cluster(t, NATS)
	var all []string
	for _, m := range c.Members {
		all = append(all, m.Address)
	}
	createAtOnce(t, "nats://"+strings.Join(all, ",")+"/fresh?create=true")
}

func TestNATSCluster(t *testing.T) { testCluster(t, NATS) }

// The suite on a bucket with three replicas, each handle with another server first.
func TestNATSReplicated(t *testing.T) {
	c := cluster(t, NATS)
	const prefix = "suite"
	var next atomic.Int32
	url := func() string {
		i := int(next.Add(1)) % 3
		return fmt.Sprintf("nats://%s,%s,%s/%s?prefix=%s", c.Members[i].Address, c.Members[(i+1)%3].Address, c.Members[(i+2)%3].Address, natsBucket, prefix)
	}
	conform(t, NATS+" 3 nodes", c.Members[0].How, conformance.Harness{
		Open:         func(t testing.TB) backends.Backend { return opener(url())(t) },
		OpenReadOnly: func(t testing.TB) backends.Backend { return readOnlyOpener(url())(t) },
		Slow:         true,
		TTL:          time.Second,
		Raw:          natsRaw(t, c.Members[0].Address, natsBucket, prefix),
	})
}

// natsAs returns the store's URL with a login and parameters.
func natsAs(s *Store, l Login, query string) string { return l.In(s.URL) + query }

// The documented permissions are enough, and those of a reader do not let it write.
func TestNATSReader(t *testing.T) {
	for i, block := range page.Blocks(t, "../../../docs/stores/nats.md", "conf", 2) {
		want := []string{NATSRights, NATSReaderRights}[i]
		if plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }; plain(block) != plain(want) {
			t.Errorf("the page has the permissions %s, and this test %s", block, want)
		}
	}
	s, err := NATSWithUsers(t.Context(), NATSRights)
	must(t, err)
	defer func() { must(t, s.Stop()) }()
	opener(natsAs(s, s.Admin, "?create=true"))(t).Close()
	candidate := natsAs(s, s.User, "")
	readers, err := NATSWithUsers(t.Context(), NATSReaderRights)
	must(t, err)
	defer func() { must(t, readers.Stop()) }()
	for call, err := range candidateCalls(t, candidate) {
		if err != nil {
			t.Errorf("a candidate's %s: %v", call, err)
		}
	}
	missing := strings.Replace(natsAs(readers, readers.Admin, ""), "/"+natsBucket, "/missing", 1)
	opener(natsAs(readers, readers.Admin, "?create=true"))(t).Close()
	readsOnly(t, natsAs(readers, readers.Admin, ""), natsAs(readers, readers.User, ""), missing)
}

// What a user may not do is said with the permission that is missing.
func TestNATSDenied(t *testing.T) {
	for name, test := range map[string]struct{ permissions, says string }{
		"no information": {`publish: [ "x" ], subscribe: [ "_INBOX.>" ]`, "$JS.API.STREAM.INFO.KV_elections"},
		"no inbox":       {`subscribe: [ "x" ]`, "subscribe to _INBOX.>"},
		"no bucket":      {NATSRights, "nats kv add elections"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NATSWithUsers(t.Context(), test.permissions)
			must(t, err)
			defer func() { must(t, s.Stop()) }()
			if name != "no bucket" {
				opener(natsAs(s, s.Admin, "?create=true"))(t).Close()
			}
			if err := openError(t, natsAs(s, s.User, "?create=true")); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want ErrDenied with %q", err, test.says)
			}
		})
	}
	s, err := NATSWithUsers(t.Context(), NATSRights)
	must(t, err)
	defer func() { must(t, s.Stop()) }()
	for name, login := range map[string]Login{"a wrong password": {s.User.User, "wrong"}, "an unknown user": {"nobody", "x"}} {
		if err := openError(t, natsAs(s, login, "")); !errors.Is(err, backends.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := openError(t, s.URL); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("no password: %v", err)
	}
}

func TestNATSRotates(t *testing.T) {
	ctx := t.Context()
	s, err := NATSWithUsers(ctx, NATSRights)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	must(t, opener(natsAs(s, s.Admin, "?create=true"))(t).Close())
	rotates(t, s.PasswordURL, s.User, func(l Login) {
		s.User = l
		must(t, NATSPermit(ctx, s, NATSRights))
	})
}

// A token, an NKey, an inbox of its own, and TLS with a certificate of the client.
func TestNATSCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	pair, err := nkeys.CreateUser()
	must(t, err)
	public, err := pair.PublicKey()
	must(t, err)
	seed, err := pair.Seed()
	must(t, err)
	seedFile, tokenFile := write("seed", string(seed)), write("token", "a-token\n")
	nkey, err := nats.NkeyOptionFromSeed(seedFile)
	must(t, err)
	ca, cert, key := natsCertificates(t, dir)
	secure := fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, key, ca)
	own := nats.ClientCert(cert, key)
	for name, test := range map[string]struct {
		settings string
		ready    []nats.Option
		scheme   string
		query    string
	}{
		"token": {`authorization { token: "a-token" }`, []nats.Option{nats.Token("a-token")}, "nats", "?token_file=" + tokenFile},
		"NKey":  {`authorization { users: [ { nkey: "` + public + `" } ] }`, []nats.Option{nkey}, "nats", "?nkey=" + seedFile},
		"inbox": {`authorization { users: [ { user: "u", password: "p", permissions: { subscribe: [ "_OWN.>", "_INBOX_R.>" ] } } ] }`, []nats.Option{nats.UserInfo("u", "p"), nats.CustomInboxPrefix("_INBOX_R")}, "nats", "?inbox=_OWN"},
		"TLS":   {secure, []nats.Option{nats.RootCAs(ca), own}, "natss", "?ca=" + ca + "&cert=" + cert + "&key=" + key},
		"TLS first": {strings.Replace(secure, "verify", "handshake_first: true, verify", 1), []nats.Option{nats.RootCAs(ca), own, nats.TLSHandshakeFirst()}, "natss",
			"?tls_first=true&ca=" + ca + "&cert=" + cert + "&key=" + key},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := startNATSWith(t.Context(), test.settings, test.ready...)
			must(t, err)
			defer func() { must(t, s.Stop()) }()
			login := ""
			if name == "inbox" {
				login = "u:p@"
			}
			url := test.scheme + "://" + login + s.Address + "/b"
			leadOnce(t, url+test.query+"&create=true")
			if err := openError(t, url); !errors.Is(err, backends.ErrDenied) && !errors.Is(err, backends.ErrMisconfigured) && !strings.Contains(err.Error(), "tls_first=true") {
				t.Errorf("without %s: %v", test.query, err)
			}
			if test.scheme == "natss" {
				if err := openError(t, url+"?ca="+ca); !errors.Is(err, backends.ErrMisconfigured) && !errors.Is(err, backends.ErrUnavailable) {
					t.Errorf("without a client certificate: %v", err)
				}
			}
		})
	}
}

// natsCertificates makes an authority, and a certificate of it for a server on 127.0.0.1
// and for clients.
func natsCertificates(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, cert, key
}

// elector doctor finds nothing on three servers, and on one that another can fail.
func TestNATSDoctor(t *testing.T) {
	program := buildTool(t)
	c := cluster(t, NATS)
	for _, args := range [][]string{nil, {"--read-only"}} {
		d := diagnose(t, program, c.URL(), append(args, "--ttl=10m")...)
		if d.code != 0 || len(d.lines) < 6 || slices.ContainsFunc(d.lines, func(l diagnosisLine) bool { return l.Level != "ok" || l.Seen == "" || l.Fix != "" }) {
			t.Errorf("%v: exit code %d: %s", args, d.code, d.output)
		}
		t.Log(d.output)
	}
	s := obtain(t, NATS)
	for name, test := range map[string]struct {
		url, level, check, cure string
		code                    int
	}{
		"one server":  {s.URL, "warn", "replicas", "on three servers", 0},
		"server down": {"nats://" + vacantAddress(t) + "/b", "fail", "connection", "see whether nats-server runs", 69},
	} {
		d := diagnose(t, program, test.url, "--ttl=10m")
		found := slices.ContainsFunc(d.lines, func(l diagnosisLine) bool {
			return l.Level == test.level && l.Check == test.check && strings.Contains(l.Seen+" "+l.Fix, test.cure)
		})
		if d.code != test.code || !found {
			t.Errorf("%s: exit code %d, want %d and a line %q of %q with %q: %s", name, d.code, test.code, test.level, test.check, test.cure, d.output)
		}
	}
}
