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

// Config returns a configuration for connections to the hosts, each with a port or without.
// It reads the files, and refuses them as they are now if they are wrong. Each connection
// reads them again, so that certificates, keys and authorities can be rotated: see verify.
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
	if (f.Cert == "") != (f.Key == "") {
		return nil, fmt.Errorf("parameters cert and key go together")
	}
	if f.Cert == "" {
		return config, nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.certificate() }
	_, err := f.certificate()
	return config, err
}

// verify verifies a server's certificate as package tls does by default, against the
// authorities that are in the file now. Package tls does not tell the server's address if
// that is an IP address: then the certificate must be for one of those in the URL.
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
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if net.ParseIP(host) != nil {
			found = append(found, host)
		}
	}
	return found
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

func (f Files) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("parameters cert and key: %w", err)
	}
	return &pair, nil
}
