package main

// Certificates and requests put together field by field, so that any of them can be wrong.

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
)

// tlv is one value in DER.
func tlv(tag byte, parts ...[]byte) []byte {
	content := slices.Concat(parts...)
	switch n := len(content); {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, content...)
	case n < 0x100:
		return append([]byte{tag, 0x81, byte(n)}, content...)
	default:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, content...)
	}
}

func sequence(parts ...[]byte) []byte { return tlv(0x30, parts...) }

func oid(text string) []byte {
	var id asn1.ObjectIdentifier
	for _, part := range strings.Split(text, ".") {
		number, _ := new(big.Int).SetString(part, 10)
		id = append(id, int(number.Int64()))
	}
	return must(asn1.Marshal(id))
}

func bits(content []byte) []byte { return tlv(3, []byte{0}, content) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A key with its SubjectPublicKeyInfo.
type key struct {
	kind   string
	signer crypto.Signer
	spki   []byte
}

func newKey(kind string) key {
	var signer crypto.Signer
	switch kind {
	case "rsa1024":
		signer = must(rsa.GenerateKey(rand.Reader, 1024))
	case "rsa1536":
		signer = must(rsa.GenerateKey(rand.Reader, 1536))
	case "rsa2048":
		signer = must(rsa.GenerateKey(rand.Reader, 2048))
	case "rsa3072":
		signer = must(rsa.GenerateKey(rand.Reader, 3072))
	case "p224":
		signer = must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	case "p256":
		signer = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	case "p384":
		signer = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	case "p521":
		signer = must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	case "ed25519":
		_, private := must2(ed25519.GenerateKey(rand.Reader))
		signer = private
	}
	return key{kind, signer, must(x509.MarshalPKIXPublicKey(signer.Public()))}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}

var null = []byte{5, 0}

// pss is the AlgorithmIdentifier of RSA-PSS.
func pss(hash, mask string, salt int64) []byte {
	id := sequence(oid(hash), null)
	mgf := sequence(oid("1.2.840.113549.1.1.8"), sequence(oid(mask), null))
	number := must(asn1.Marshal(salt))
	return sequence(oid("1.2.840.113549.1.1.10"), sequence(tlv(0xa0, id), tlv(0xa1, mgf), tlv(0xa2, number)))
}

const sha256, sha384, sha512 = "2.16.840.1.101.3.4.2.1", "2.16.840.1.101.3.4.2.2", "2.16.840.1.101.3.4.2.3"

// How something can be signed: the identifier that is written, and what is really done.
type scheme struct {
	identifier []byte
	hash       crypto.Hash
	options    crypto.SignerOpts
}

func rsaScheme(id string, hash crypto.Hash) scheme {
	return scheme{sequence(oid("1.2.840.113549.1.1."+id), null), hash, hash}
}

func pssScheme(id string, hash crypto.Hash) scheme {
	return scheme{pss(id, id, int64(hash.Size())), hash, &rsa.PSSOptions{SaltLength: hash.Size(), Hash: hash}}
}

func schemes(kind string) []scheme {
	switch {
	case strings.HasPrefix(kind, "rsa"):
		list := []scheme{rsaScheme("11", crypto.SHA256), rsaScheme("12", crypto.SHA384), rsaScheme("13", crypto.SHA512),
			pssScheme(sha256, crypto.SHA256), pssScheme(sha384, crypto.SHA384), rsaScheme("5", crypto.SHA1),
			{pss(sha256, sha256, 20), crypto.SHA256, &rsa.PSSOptions{SaltLength: 20, Hash: crypto.SHA256}},
			{pss(sha256, sha512, 32), crypto.SHA256, &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256}},
			{sequence(oid("1.2.840.113549.1.1.11")), crypto.SHA256, crypto.SHA256},
			{sequence(oid("1.2.840.113549.1.1.4"), null), crypto.SHA256, crypto.SHA256}}
		if kind != "rsa1024" {
			list = append(list, pssScheme(sha512, crypto.SHA512))
		}
		return list
	case kind == "ed25519":
		return []scheme{{sequence(oid("1.3.101.112")), 0, crypto.Hash(0)}, {sequence(oid("1.3.101.112"), null), 0, crypto.Hash(0)}}
	}
	of := func(id string, hash crypto.Hash) scheme {
		return scheme{sequence(oid("1.2.840.10045.4." + id)), hash, hash}
	}
	return []scheme{of("3.2", crypto.SHA256), of("3.3", crypto.SHA384), of("3.4", crypto.SHA512), of("1", crypto.SHA1),
		{sequence(oid("1.2.840.10045.4.3.2"), null), crypto.SHA256, crypto.SHA256}, of("3.1", crypto.SHA256), of("3.77", crypto.SHA256)}
}

func (s scheme) sign(signer crypto.Signer, message []byte) []byte {
	if s.hash != 0 {
		hash := s.hash.New()
		hash.Write(message)
		message = hash.Sum(nil)
	}
	return must(signer.Sign(rand.Reader, message, s.options))
}

// attribute of a name: a string of some type.
func attribute(id string, tag byte, value []byte) []byte {
	return sequence(oid(id), tlv(tag, value))
}

func rdn(attributes ...[]byte) []byte { return tlv(0x31, attributes...) }

// extension with its value in DER.
type extension struct {
	id       string
	critical []byte
	value    []byte
}

var yes, no, odd = []byte{1, 1, 0xff}, []byte(nil), []byte{1, 1, 1}

func (e extension) der() []byte { return sequence(oid(e.id), e.critical, tlv(4, e.value)) }

// certificate is what a certificate is made of.
type certificate struct {
	version    []byte
	serial     []byte
	issuer     []byte
	validity   []byte
	subject    []byte
	spki       []byte
	unique     []byte
	extensions []extension
	scheme     scheme
	outer      []byte
	spoil      func(der []byte) []byte
	breaks     bool
}

func (c *certificate) sign(by key) []byte {
	var list []byte
	if len(c.extensions) > 0 {
		var all [][]byte
		for _, one := range c.extensions {
			all = append(all, one.der())
		}
		list = tlv(0xa3, sequence(all...))
	}
	body := sequence(c.version, tlv(2, c.serial), c.scheme.identifier, c.issuer, c.validity, c.subject, c.spki, c.unique, list)
	signature := c.scheme.sign(by.signer, body)
	if c.breaks {
		signature[len(signature)-1] ^= 1
	}
	outer := c.scheme.identifier
	if c.outer != nil {
		outer = c.outer
	}
	der := sequence(body, outer, bits(signature))
	if c.spoil != nil {
		der = c.spoil(der)
	}
	return der
}

func unhex(text string) []byte { return must(hex.DecodeString(text)) }
