package main

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
)

// A request, and what Go reads of it. A strict one is read by Go, and refused by rowplane: other programs could read
// something else.
type request struct {
	PEM    string   `json:"pem"`
	Strict bool     `json:"strict,omitempty"`
	Error  string   `json:"error,omitempty"`
	Name   string   `json:"name,omitempty"`
	Groups []string `json:"groups,omitempty"`
	DNS    []string `json:"dns,omitempty"`
	Emails []string `json:"emails,omitempty"`
	IPs    []string `json:"ips,omitempty"`
	URIs   []string `json:"uris,omitempty"`
	// The subject that kube-controller-manager's signer writes.
	Subject []byte `json:"subject,omitempty"`
}

const asked = "1.2.840.113549.1.9.14"

func extensionRequest(list ...extension) []byte {
	var all [][]byte
	for _, one := range list {
		all = append(all, one.der())
	}
	return sequence(oid(asked), tlv(0x31, sequence(all...)))
}

func makeRequest(own key) []byte {
	version, subject := []byte{2, 1, 0}, name(chance(50), pick("jane", "system:node:a", ""), pick([]string{}, []string{"team"}, []string{"system:nodes"}, []string{"b", "a", "system:masters"})...)
	spki, how := own.spki, schemes(own.kind)[0]
	var attributes [][]byte
	if chance(40) {
		attributes = append(attributes, extensionRequest(alternatives(chance(30), pick("a.example.com", "10.0.0.1", "::ffff:10.0.0.1", "joe@example.com", "spiffe://cluster.local/ns/a", "https://a.example.com/x"), "b")))
	}
	trailing, breaks := []byte(nil), false
	if chance(55) {
		switch random.IntN(10) {
		case 0:
			how = pick(schemes(own.kind)...)
		case 1:
			breaks = true
		case 2:
			how.identifier = pick(sequence(oid("1.2.840.10045.4.3.77")), sequence(oid("1.2.3")), null)
		case 3:
			attributes = append(attributes, pick(sequence(oid("1.2.840.113549.1.9.7"), tlv(0x31, text(utf8, "secret"))), sequence(oid(asked), tlv(0x31)), sequence(oid(asked), text(utf8, "x")), []byte{5, 0}, extensionRequest(usage(forClients)), extensionRequest(basic(yes), basic(yes))))
		case 4:
			attributes = append(attributes, extensionRequest(alternatives(false, "other.example.com")))
		case 5:
			spki = pick(anyKey().spki, keys["p224"][0].spki, sequence(sequence(oid("1.3.101.113")), bits(make([]byte, 57))), sequence(sequence(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bits([]byte{4, 1, 2})))
		case 6:
			trailing = []byte{5, 0}
		case 7:
			version = pick([]byte{2, 1, 1}, []byte{2, 2, 0, 0}, []byte{4, 1, 0})
		case 8:
			subject = sequence(rdn(attribute("2.5.4.10", pick[byte](universal, visible, 2, 4), []byte("\x00\x00\x00s")), attribute("2.5.4.3", utf8, []byte("x"))))
		case 9:
			subject = sequence(rdn(attribute("2.5.4.6", printable, []byte("DE"))), rdn(attribute("2.5.4.3", utf8, []byte("first"))), rdn(attribute("2.5.4.5", printable, []byte("7"))), rdn(attribute("0.9.2342.19200300.100.1.1", utf8, []byte("uid"))), rdn(attribute("2.5.4.3", utf8, []byte("last*"))), rdn(attribute("2.5.4.11", utf8, []byte("ü"))), rdn(attribute("2.5.4.10", t61, []byte("\xfc"))))
		}
	}
	body := sequence(version, subject, spki, tlv(0xa0, attributes...), trailing)
	signature := how.sign(own.signer, body)
	if breaks {
		signature[len(signature)-1] ^= 1
	}
	der := sequence(body, how.identifier, bits(signature))
	if chance(4) {
		der[random.IntN(len(der))] ^= 1 << random.IntN(8)
	}
	if chance(2) {
		der = append(der, 0)
	}
	return der
}

// envelop writes PEM, sometimes with other things around it.
func envelop(der, other []byte) (string, bool) {
	encode := func(label string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}) }
	label := "CERTIFICATE REQUEST"
	plain := encode(label, der)
	if chance(70) {
		return string(plain), false
	}
	switch random.IntN(11) {
	case 0:
		return string(encode("NEW CERTIFICATE REQUEST", der)), false
	case 1:
		return string(plain) + string(encode(label, other)), true
	case 2:
		return string(bytes.Replace(encode(label, other), []byte("END "+label), []byte("END "+label+"1"), 1)) + string(plain), true
	case 3:
		return "Certificate Request:\n    Data:\n" + string(plain), false
	case 4:
		return string(plain) + "trailing\n", false
	case 5:
		return "\n\n" + string(plain) + "\n \t\n", false
	case 6:
		return string(bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n"))), false
	case 7:
		return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der, Headers: map[string]string{"a": "b"}})), true
	case 8:
		return string(plain[:len(plain)-7]), false
	case 9:
		return "-----BEGIN " + label + "-----\n" + base64.StdEncoding.EncodeToString(der) + "\n-----END " + label + "-----", false
	}
	return string(plain[1:]), false
}

func requests(count int) any {
	var list []request
	good := 0
	for range count {
		text, strict := envelop(makeRequest(anyKey()), makeRequest(anyKey()))
		one := request{PEM: text, Strict: strict}
		if err := one.read(); err != nil {
			one.Error, one.Strict = err.Error(), false
		} else if !one.Strict {
			good++
		}
		list = append(list, one)
	}
	fmt.Fprintf(os.Stderr, "requests: %d, of which %d are taken\n", len(list), good)
	return list
}

// read does what Kubernetes' validation does (ParseCSR and the signature).
func (r *request) read() error {
	block, _ := pem.Decode([]byte(r.PEM))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	found, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := found.CheckSignature(); err != nil {
		return err
	}
	r.Strict = r.Strict || loose(found)
	r.Name, r.Groups, r.DNS, r.Emails = found.Subject.CommonName, found.Subject.Organization, found.DNSNames, found.EmailAddresses
	for _, ip := range found.IPAddresses {
		r.IPs = append(r.IPs, ip.String())
	}
	for _, uri := range found.URIs {
		r.URIs = append(r.URIs, uri.String())
	}
	r.Subject = must(asn1.Marshal(found.Subject.ToRDNSequence()))
	return nil
}

// loose is whether a request holds what Go passes over: strings of other types in its name, values behind the last field.
func loose(found *x509.CertificateRequest) bool {
	var whole struct {
		Body      asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	var body struct {
		Version    int
		Subject    asn1.RawValue
		Key        asn1.RawValue
		Attributes []asn1.RawValue `asn1:"tag:0"`
	}
	must(asn1.Unmarshal(found.Raw, &whole))
	must(asn1.Unmarshal(whole.Body.FullBytes, &body))
	length := len(must(asn1.Marshal(body.Version))) + len(body.Subject.FullBytes) + len(body.Key.FullBytes)
	var attributes int
	for _, one := range body.Attributes {
		attributes += len(one.FullBytes)
	}
	var subject pkix.RDNSequence
	must(asn1.Unmarshal(found.RawSubject, &subject))
	isText := func(one pkix.AttributeTypeAndValue) bool { _, ok := one.Value.(string); return ok }
	for _, set := range subject {
		if slices.ContainsFunc(set, func(one pkix.AttributeTypeAndValue) bool { return !isText(one) }) {
			return true
		}
	}
	return length+len(tlv(0xa0, make([]byte, attributes))) != len(whole.Body.Bytes)
}
