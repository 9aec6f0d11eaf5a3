// Package tlsfiles makes TLS client configurations from the files that a store's
// URL names.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
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

// Config reads the files. The client certificate is read again for each
// connection, so that it can be rotated.
func (f Files) Config() (*tls.Config, error) {
	config := &tls.Config{ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("parameter ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("parameter ca: %s has no PEM certificate", f.CA)
		}
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

func (f Files) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("parameters cert and key: %w", err)
	}
	return &pair, nil
}
