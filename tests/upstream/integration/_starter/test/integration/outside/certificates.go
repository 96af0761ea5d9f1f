package outside

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// credentials are the certificates and keys that all servers of a test program share.
type credentials struct {
	serving, servingKey []byte // PEM; its own authority
	clientCA            []byte // PEM
	accounts            []byte // PEM of the key that signs tokens of ServiceAccounts
	front               Authority
}

// Authority is a certificate that signs others, and its key.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

var shared = sync.OnceValue(func() credentials {
	serving := selfSigned("127.0.0.1", func(template *x509.Certificate) {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 0, 0, 1)}
	})
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	return credentials{
		serving:    certificatePEM(serving.Certificate.Raw),
		servingKey: keyPEM(serving.Key),
		clientCA:   certificatePEM(selfSigned("client-ca", nil).Certificate.Raw),
		accounts:   keyPEM(accounts),
		front:      selfSigned("front-proxy-ca", nil),
	}
})

func selfSigned(name string, change func(*x509.Certificate)) Authority {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	template := validNow(name)
	template.KeyUsage |= x509.KeyUsageCertSign
	template.IsCA = true
	if change != nil {
		change(template)
	}
	return Authority{signed(template, template, key.Public(), key), key}
}

// client is a certificate for the server itself where it is a client, and its key, both as PEM.
func (a Authority) client(name string) (certificate, key []byte) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := validNow(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return certificatePEM(signed(template, a.Certificate, own.Public(), a.Key).Raw), keyPEM(own)
}

func validNow(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(48 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
	}
}

func signed(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	must(err)
	certificate, err := x509.ParseCertificate(der)
	must(err)
	return certificate
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key crypto.Signer) []byte {
	if key, ok := key.(*rsa.PrivateKey); ok {
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	}
	der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
