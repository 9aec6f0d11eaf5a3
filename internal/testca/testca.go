// Package testca makes certificate authorities and certificates for tests.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority of its own key.
func New() *Authority {
	a := &Authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, key := a.sign(template)
	a.cert, a.key = must(x509.ParseCertificate(der)), key
	return a
}

// sign signs with the authority's key, or as one that signs itself.
func (a *Authority) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	parent, signer := c, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	return must(x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)), key
}

// Issue returns a certificate for the names and addresses, the first of which is its common
// name, until a time.
func (a *Authority) Issue(until time.Time, names ...string) tls.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	der, key := a.sign(c)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Pair returns a certificate of [Authority.Issue] and its key.
func Pair(c tls.Certificate) (cert, key []byte) {
	secret := must(x509.MarshalPKCS8PrivateKey(c.PrivateKey))
	return encode("CERTIFICATE", c.Certificate[0]), encode("PRIVATE KEY", secret)
}

func encode(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// must is for what cannot fail.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
