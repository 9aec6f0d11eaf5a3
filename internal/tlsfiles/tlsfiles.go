// Package tlsfiles makes TLS client configurations from the files that a store's
// URL names.
package tlsfiles

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/elector-go/elector/backends"
)

// Files are the parameters ca, cert, key and server_name of a URL. The zero
// value stands for the system's authorities and no client certificate.
type Files struct{ CA, Cert, Key, ServerName string }

// From takes the parameters.
func From(p *backends.Parameters) Files {
	return Files{CA: p.String("ca", ""), Cert: p.String("cert", ""), Key: p.String("key", ""), ServerName: p.String("server_name", "")}
}

// For returns a configuration for one connection to an address, with a port or without one, with
// what the files have now: a client makes it anew for each connection, so that certificates,
// keys and authorities can be rotated.
func (f Files) For(address string) (*tls.Config, error) {
	config := &tls.Config{ServerName: cmp.Or(f.ServerName, hostOf(address))}
	if f.CA != "" {
		roots, err := f.authorities()
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	return config, f.identify(config)
}

// Check reads the files, and returns why they cannot be used.
func (f Files) Check() error {
	_, err := f.For("")
	return err
}

// Config returns a configuration for all connections to the hosts, for a client library that
// takes no other. Each connection reads the files again, see verify.
func (f Files) Config(hosts ...string) (*tls.Config, error) {
	config := &tls.Config{ServerName: f.ServerName}
	if f.CA != "" {
		if _, err := f.authorities(); err != nil {
			return nil, err
		}
		// What the standard library would verify against is fixed with the configuration:
		// verify does the same for each connection.
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(s tls.ConnectionState) error { return f.verify(s, hosts) }
	}
	return config, f.identify(config)
}

// identify gives a configuration the client's certificate, which it reads.
func (f Files) identify(config *tls.Config) error {
	if (f.Cert == "") != (f.Key == "") {
		return fmt.Errorf("parameters cert and key go together")
	}
	if f.Cert == "" {
		return nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.Certificate() }
	_, err := f.Certificate()
	return err
}

// verify verifies a server's certificate as package tls does, against the authorities that are
// in the file now. Package tls does not tell it the server's address if that is an IP address:
// then the certificate may be for any of those that the URL names.
func (f Files) verify(s tls.ConnectionState, hosts []string) error {
	roots, err := f.authorities()
	if err != nil {
		return err
	}
	names := []string{cmp.Or(f.ServerName, s.ServerName)}
	if names[0] == "" {
		names = addresses(hosts)
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	err = errors.New("the URL names no such IP address")
	for _, o.DNSName = range names {
		if _, err = s.PeerCertificates[0].Verify(o); err == nil {
			return nil
		}
	}
	return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: fmt.Errorf("parameter ca, %s: %w", f.CA, err)}
}

// addresses returns the IP addresses among hosts.
func addresses(hosts []string) (found []string) {
	for _, host := range hosts {
		if host = hostOf(host); net.ParseIP(host) != nil {
			found = append(found, host)
		}
	}
	return found
}

// hostOf returns an address without its port and the brackets of IPv6.
func hostOf(address string) string { return (&url.URL{Host: address}).Hostname() }

// Authorities returns those of ca, as they are now; nil, for those of the system, without it.
func (f Files) Authorities() (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	return f.authorities()
}

func (f Files) authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("parameter ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("parameter ca: %s has no PEM certificate", f.CA)
	}
	return roots, nil
}

// Certificate returns the client's, as it is now.
func (f Files) Certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("parameters cert and key: %w", err)
	}
	return &pair, nil
}
