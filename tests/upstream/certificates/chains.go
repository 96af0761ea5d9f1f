package main

import (
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

var (
	random *rand.Rand
	keys   = map[string][]key{}
	kinds  = []string{"p256", "p256", "p384", "p521", "ed25519", "rsa1024", "rsa1536", "rsa2048", "p224"}
	// The moment of all verdicts.
	now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

func chance(percent int) bool        { return random.IntN(100) < percent }
func pick[T any](list ...T) T        { return list[random.IntN(len(list))] }
func anyKey() key                    { return pick(keys[pick(kinds[:8]...)]...) }
func text(tag byte, s string) []byte { return tlv(tag, []byte(s)) }

const (
	utf8, numeric, printable, t61, ia5, visible, universal, bmp = 12, 18, 19, 20, 22, 26, 28, 30
)

// value of a string type; some are wrong.
func value(s string) (byte, []byte) {
	wide := func(width int) []byte {
		var out []byte
		for _, c := range s {
			out = append(out, make([]byte, width-1)...)
			out = append(out, byte(c))
		}
		return out
	}
	switch random.IntN(16) {
	case 0:
		return t61, []byte(s)
	case 1:
		return bmp, wide(2)
	case 2:
		return ia5, []byte(s)
	case 3:
		return printable, []byte(s)
	case 4:
		if chance(30) {
			return pick[byte](universal, visible, 2, 4), wide(4)
		}
		return bmp, append(wide(2), 0, 0)
	case 5:
		return pick[byte](utf8, printable, ia5, t61, numeric, bmp), pick([]byte{0xff, 0xfe}, []byte("a*b&c"), []byte("a_b@c"), []byte{0xd8, 0, 0, 0x41}, []byte("12 3"), []byte{0})
	}
	return pick[byte](utf8, printable), []byte(s)
}

func name(plain bool, cn string, organizations ...string) []byte {
	of := func(id, s string) []byte {
		tag, bytes := byte(utf8), []byte(s)
		if !plain {
			tag, bytes = value(s)
		}
		return attribute(id, tag, bytes)
	}
	var sets [][]byte
	for _, organization := range organizations {
		sets = append(sets, rdn(of("2.5.4.10", organization)))
	}
	if !plain && chance(8) {
		sets = append(sets, rdn(of("2.5.4.3", "first"), of("2.5.4.11", "unit")))
	}
	if !plain && chance(8) {
		sets = append(sets, rdn(of("1.3.6.1.4.1.57683.2", "uid-1")))
	}
	if cn != "" {
		sets = append(sets, rdn(of("2.5.4.3", cn)))
	}
	if !plain && chance(3) {
		sets = append(sets, rdn())
	}
	return sequence(sets...)
}

func utc(at time.Time) []byte         { return text(0x17, at.UTC().Format("060102150405Z")) }
func generalized(at time.Time) []byte { return text(0x18, at.UTC().Format("20060102150405Z")) }

func validity(odd bool) []byte {
	from, until := now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0)
	if !odd {
		return sequence(utc(from), utc(until))
	}
	switch random.IntN(12) {
	case 0, 1:
		return sequence(utc(from), utc(now.Add(-time.Second)))
	case 2:
		return sequence(utc(now.Add(time.Second)), utc(until))
	case 3:
		return sequence(utc(now), utc(now))
	case 4:
		return sequence(generalized(from), generalized(now.AddDate(40, 0, 0)))
	case 5:
		return sequence(text(0x17, "2505010000Z"), text(0x17, "9912312359Z"))
	case 6:
		return sequence(text(0x17, "250501000000+0100"), text(0x17, "270501000000-0130"))
	case 7:
		return sequence(text(0x17, "250501000000+0000"), utc(until))
	case 8:
		return sequence(text(0x18, "20250501000000.5Z"), utc(until))
	case 9:
		return sequence(text(0x17, pick("251301000000Z", "250230000000Z", "250501240000Z", "250501006000Z", "250501000060Z", "25050100000Z", "25-501000000Z")), utc(until))
	case 10:
		return sequence(text(0x18, pick("2025050100Z", "202505010000Z", "20250501000000", "00010101000000Z")), text(0x18, pick("99991231235959Z", "20270101000000+0200")))
	}
	return pick(sequence(utc(from)), sequence(utc(until), utc(from)), sequence(text(12, "250501000000Z"), utc(until)))
}

func general(tag byte, content string) []byte { return tlv(0x80|tag, []byte(content)) }

// alternative names for hosts of a site.
func alternatives(odd bool, names ...string) extension {
	var list [][]byte
	for _, one := range names {
		if address := net.ParseIP(one); address != nil {
			bytes := address.To4()
			if bytes == nil {
				bytes = address
			}
			list = append(list, tlv(0x87, bytes))
		} else if strings.Contains(one, "://") || strings.HasPrefix(one, "urn:") {
			list = append(list, general(6, one))
		} else if strings.Contains(one, "@") {
			list = append(list, general(1, one))
		} else {
			list = append(list, general(2, one))
		}
	}
	if odd {
		list = append(list, pick(general(2, "\xff.example.com"), tlv(0x87, []byte{1, 2, 3}), general(6, pick("http://[", ":x", "http://a.:1/", "%zz:", "spiffe://a b/", "http://x/%zz", "a:b:c", "//h/p", "a\x01", "http://u:p@h:8x/")),
			general(1, "\xff@x"), tlv(0xa0, oid("1.3.6.1.4.1.311.20.2.3"), tlv(0xa0, text(utf8, "root@x"))), tlv(0xa4, name(true, "dir")), general(8, "\x2a"), general(2, ""), general(2, "*"), general(2, "a..b"), general(2, "x.")))
	}
	return extension{"2.5.29.17", pick(no, no, no, yes), sequence(list...)}
}

func constraint(tag byte, content string) []byte { return sequence(tlv(0x80|tag, []byte(content))) }

func constraints() extension {
	subtrees := func() []byte {
		var list [][]byte
		for range 1 + random.IntN(2) {
			list = append(list, pick(
				constraint(2, pick("example.com", ".example.com", "com", "EXAMPLE.com", "other.org", "a.example.com", "", "x..y", "tail.")),
				constraint(2, pick("example.com", "example.com", "com", "b.example.com")),
				constraint(7, pick("\x0a\x00\x00\x00\xff\x00\x00\x00", "\x0a\x01\x00\x00\xff\xff\x00\x00", "\x7f\x00\x00\x01\xff\xff\xff\xff", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x0a\x00\x00\x00\xff\x00\xff\x00", "\x0a")),
				constraint(1, pick("example.com", ".example.com", "joe@example.com", "\"q t\"@example.com", "@", "a@b@c")),
				constraint(6, pick("example.com", ".example.com", "10.0.0.1", "cluster.local")),
				sequence(tlv(0xa4, name(true, "dir")))))
		}
		return slices.Concat(list...)
	}
	var parts [][]byte
	if chance(60) {
		parts = append(parts, tlv(0xa0, subtrees()))
	}
	if chance(50) {
		parts = append(parts, tlv(0xa1, subtrees()))
	}
	if chance(4) {
		parts = append(parts, tlv(0xa0))
	}
	return extension{"2.5.29.30", pick(yes, no), sequence(parts...)}
}

func policy() []extension {
	one := func(ids ...string) extension {
		var list [][]byte
		for _, id := range ids {
			list = append(list, sequence(oid(id)))
		}
		return extension{"2.5.29.32", pick(yes, no), sequence(list...)}
	}
	var all []extension
	if chance(75) {
		all = append(all, one(pick([]string{"1.2.3.4"}, []string{"1.2.3.5", "1.2.3.4"}, []string{"2.5.29.32.0"}, []string{"1.2.3.4", "2.5.29.32.0"}, []string{"1.2.3.4", "1.2.3.4"}, []string{"1.2.3.6"})...))
	}
	if chance(30) {
		pairs := sequence(sequence(oid(pick("1.2.3.4", "1.2.3.5", "2.5.29.32.0")), oid(pick("1.2.3.5", "1.2.3.6"))), sequence(oid("1.2.3.4"), oid("1.2.3.6")))
		all = append(all, extension{"2.5.29.33", pick(yes, no), pairs})
	}
	if chance(45) {
		content := pick(tlv(0x80, []byte{0}), tlv(0x80, []byte{1}), slices.Concat(tlv(0x80, []byte{0}), tlv(0x81, []byte{0})), tlv(0x81, []byte{0}), tlv(0x80, []byte{2}), tlv(0x80), tlv(0x80, []byte{0xff}))
		all = append(all, extension{"2.5.29.36", yes, sequence(content)})
	}
	if chance(25) {
		all = append(all, extension{"2.5.29.54", yes, pick([]byte{2, 1, 0}, []byte{2, 1, 1}, []byte{2, 1, 0xff}, []byte{4, 1, 0})})
	}
	return all
}

func usage(ids ...string) extension {
	var list [][]byte
	for _, id := range ids {
		list = append(list, oid(id))
	}
	return extension{"2.5.29.37", pick(no, yes), sequence(list...)}
}

const forServers, forClients, forAny, forOthers = "1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2", "2.5.29.37.0", "1.2.3.4.5"

func keyUsage(value ...byte) extension {
	return extension{"2.5.29.15", pick(yes, no), tlv(3, value)}
}

func basic(parts ...[]byte) extension {
	return extension{"2.5.29.19", pick(yes, yes, no), sequence(parts...)}
}

func set(c *certificate, id string, replacement ...extension) {
	c.extensions = slices.DeleteFunc(c.extensions, func(e extension) bool { return e.id == id })
	c.extensions = append(c.extensions, replacement...)
}

// twist changes something of a certificate, often to something wrong.
func twist(c *certificate, isCA bool) {
	switch random.IntN(24) {
	case 0:
		c.validity = validity(true)
	case 1, 2:
		set(c, "2.5.29.19", pick([]extension{}, []extension{basic()}, []extension{basic(yes)}, []extension{basic(yes, []byte{2, 1, 0})}, []extension{basic(yes, []byte{2, 1, 1})}, []extension{basic(odd)}, []extension{basic([]byte{1, 1, 0})}, []extension{basic(yes, []byte{2, 1, 0xff})}, []extension{basic([]byte{2, 1, 0})})...)
	case 3, 4:
		set(c, "2.5.29.15", pick([]extension{}, []extension{keyUsage(2, 4)}, []extension{keyUsage(7, 0x80)}, []extension{keyUsage(0)}, []extension{keyUsage(7, 0)}, []extension{keyUsage(2, 0x84)}, []extension{keyUsage(7, 0, 0x80)}, []extension{keyUsage(1, 5)}, []extension{{"2.5.29.15", yes, nil}})...)
	case 5, 6, 7:
		set(c, "2.5.29.37", pick([]extension{}, []extension{usage(forServers)}, []extension{usage(forClients)}, []extension{usage(forAny)}, []extension{usage(forServers, forClients)}, []extension{usage(forOthers)}, []extension{usage(forOthers, forAny)}, []extension{usage()}, []extension{{"2.5.29.37", no, []byte{0x30, 3, 6, 1}}})...)
	case 8:
		c.version = pick(nil, tlv(0xa0, []byte{2, 1, 1}), tlv(0xa0, []byte{2, 1, 3}), tlv(0xa0, []byte{2, 1, 0}), tlv(0xa0, []byte{2, 1, 0xff}), tlv(0xa0, []byte{2, 2, 0, 2}))
		if chance(50) {
			c.extensions = nil
		}
	case 9:
		c.extensions = append(c.extensions, extension{pick("1.2.3.4.5.6", "2.5.29.99", "2.5.29.18", "2.5.29.20", "1.3.6.1.5.5.7.1.3", "2.5.29.9"), pick(yes, no), []byte{5, 0}})
	case 10, 11:
		c.extensions = append(c.extensions, policy()...)
	case 12, 13:
		set(c, "2.5.29.30", constraints())
	case 14:
		set(c, "2.5.29.35", extension{"2.5.29.35", pick(no, no, no, yes), pick(sequence(tlv(0x80, []byte("other"))), sequence(), sequence(tlv(0x82, []byte{1})), []byte{4, 0})})
	case 15:
		set(c, "2.5.29.14", extension{"2.5.29.14", pick(no, no, no, yes), pick(tlv(4, []byte("wrong")), tlv(4), []byte{5, 0})})
	case 16:
		if len(c.extensions) > 0 {
			c.extensions = append(c.extensions, c.extensions[0])
		}
	case 17:
		c.breaks = true
	case 18:
		c.outer = sequence(oid("1.2.840.113549.1.1.12"), null)
	case 19:
		c.serial = pick([]byte{0xff}, []byte{0}, []byte{0, 1}, nil, []byte{0, 0xff}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23})
	case 20:
		c.spoil = pick(
			func(der []byte) []byte { return append(der, 0) },
			func(der []byte) []byte { return append([]byte{0x30, 0x83, 0}, der[2:]...) },
			func(der []byte) []byte { return append([]byte{0x30, 0x80}, append(der[4:], 0, 0)...) },
			func(der []byte) []byte { at := random.IntN(len(der)); der[at] ^= byte(1 << random.IntN(8)); return der },
			func(der []byte) []byte { at := random.IntN(60); der[at] ^= byte(1 << random.IntN(8)); return der },
			func(der []byte) []byte { return der[:len(der)-1] })
	case 21:
		c.spki = pick(
			sequence(sequence(oid("1.2.840.113549.1.1.1")), bits(sequence([]byte{2, 1, 3}, []byte{2, 1, 3}))),
			sequence(sequence(oid("1.2.840.113549.1.1.1"), null), bits(sequence([]byte{2, 1, 0}, []byte{2, 1, 3}))),
			sequence(sequence(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), bits([]byte{4, 1, 2})),
			sequence(sequence(oid("1.2.840.10045.2.1"), oid("1.3.132.0.10")), bits([]byte{4, 1, 2})),
			sequence(sequence(oid("1.3.101.112"), null), bits(make([]byte, 32))),
			sequence(sequence(oid("1.3.101.112")), bits(make([]byte, 31))),
			sequence(sequence(oid("1.3.101.110")), bits(make([]byte, 32))),
			sequence(sequence(oid("1.3.101.113")), bits(make([]byte, 57))),
			sequence(sequence(oid("1.2.840.10040.4.1"), sequence([]byte{2, 1, 5}, []byte{2, 1, 5}, []byte{2, 1, 5})), bits([]byte{2, 1, 5})),
			sequence(sequence(oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")), tlv(3, []byte{1}, []byte{4, 2})))
	case 22:
		c.extensions = append(c.extensions, pick(
			extension{"1.3.6.1.5.5.7.1.1", pick(no, yes), sequence(sequence(oid("1.3.6.1.5.5.7.48.1"), general(6, "http://ocsp/")))},
			extension{"1.3.6.1.5.5.7.1.1", no, sequence(sequence([]byte{5, 0}))},
			extension{"2.5.29.31", pick(no, yes), sequence(sequence(tlv(0xa0, tlv(0xa0, general(6, "http://crl/")))))},
			extension{"2.5.29.31", no, sequence(sequence(tlv(0xa0, tlv(0xa1))))},
			extension{"2.5.29.31", no, []byte{5, 0}}))
		if chance(30) {
			c.unique = pick(tlv(0x81, []byte{0, 1}), tlv(0x82, []byte{0, 1}), tlv(0xa1, []byte{0}))
		}
	case 23:
		if isCA {
			set(c, "2.5.29.17", alternatives(chance(50), pick("ca.example.com", "10.1.0.9", "ca@example.com", "https://ca.example.com/")))
		} else {
			set(c, "2.5.29.17", alternatives(true, "a.example.com"))
		}
	}
}

var hosts = []string{"a.example.com", "b.example.com", "A.EXAMPLE.COM", "a.example.com.", "example.com", "x.a.example.com", "10.0.0.1", "10.1.2.3", "::1", "[::1]", "::ffff:10.0.0.1", "localhost", "under_score.example.com", "host", "-x.example.com"}

type site struct {
	der   []byte
	key   key
	name  []byte
	keyID []byte
}

type table struct {
	list  []stored
	index map[string]int
}

// A certificate, and why Go does not parse it.
type stored struct {
	DER   []byte `json:"der"`
	Error string `json:"error,omitempty"`
}

func (t *table) add(der []byte) int {
	if at, ok := t.index[string(der)]; ok {
		return at
	}
	_, err := x509.ParseCertificate(der)
	one := stored{DER: der}
	if err != nil {
		one.Error = err.Error()
	}
	t.list, t.index[string(der)] = append(t.list, one), len(t.list)
	return len(t.list) - 1
}

type verdict struct {
	Roots   []int    `json:"roots"`
	Chain   []int    `json:"chain"`
	Purpose string   `json:"purpose"`
	Host    string   `json:"host,omitempty"`
	Error   string   `json:"error,omitempty"`
	Name    string   `json:"name,omitempty"`
	Groups  []string `json:"groups,omitempty"`
}

func make_(subject []byte, issuer *site, own key, isCA bool, percent int) (*certificate, site) {
	id := random.Uint64()
	keyID := fmt.Appendf(nil, "%016x", id)[:8]
	c := &certificate{
		version: tlv(0xa0, []byte{2, 1, 2}), serial: append([]byte{1}, keyID...), validity: validity(false),
		subject: subject, spki: own.spki, issuer: subject,
	}
	by := own
	if issuer != nil {
		by, c.issuer = issuer.key, issuer.name
	}
	list := schemes(by.kind)
	c.scheme = list[0]
	if chance(15) {
		c.scheme = pick(list...)
	}
	if isCA {
		c.extensions = []extension{basic(yes), keyUsage(1, 6), {"2.5.29.14", no, tlv(4, keyID)}}
	} else {
		c.extensions = []extension{keyUsage(5, 0xa0)}
	}
	if issuer != nil && chance(70) {
		c.extensions = append(c.extensions, extension{"2.5.29.35", no, sequence(tlv(0x80, issuer.keyID))})
	}
	for chance(percent) {
		twist(c, isCA)
	}
	if issuer != nil && chance(2) {
		c.issuer = name(true, "nobody")
	}
	return c, site{key: own, name: subject, keyID: keyID}
}

func finish(c *certificate, s site, by key) site {
	s.der = c.sign(by)
	return s
}

func chains(count int) any {
	all := &table{index: map[string]int{}}
	var cases []verdict
	good := 0
	for number := range count {
		server := chance(40)
		rootKey := anyKey()
		c, root := make_(name(chance(80), fmt.Sprintf("ca-%d", number), "authorities"), nil, rootKey, true, 30)
		root = finish(c, root, rootKey)
		last := root
		var between [][]byte
		for range pick(0, 0, 0, 1, 1, 2, 3) {
			own := anyKey()
			c, next := make_(name(chance(85), fmt.Sprintf("sub-%d-%d", number, len(between))), &last, own, true, 25)
			next = finish(c, next, last.key)
			between = append(between, next.der)
			if chance(6) {
				// The same authority, signed by somebody else.
				c, other := make_(next.name, &root, own, true, 20)
				between = append(between, finish(c, other, root.key).der)
			}
			last = next
		}
		own := anyKey()
		if chance(4) {
			own = pick(keys["p224"]...)
		}
		c, leaf := make_(name(chance(60), pick("jane", "system:node:a", "", "kubernetes"), pick([]string{}, []string{"team"}, []string{"team", "system:masters"})...), &last, own, false, 35)
		host := ""
		if server {
			names := []string{pick("a.example.com", "*.example.com", "localhost", "under_score.example.com", "host", "example.com", "-x.example.com")}
			for chance(50) {
				names = append(names, pick("10.0.0.1", "10.1.2.3", "::1", "b.example.com", "joe@example.com", "\"q t\"@example.com", "https://a.example.com/x", "spiffe://cluster.local/ns/a", "urn:uuid:1", "https://10.0.0.1/", "https://a.example.com:8443/"))
			}
			if !chance(6) {
				set(c, "2.5.29.17", alternatives(chance(8), names...))
			}
			host = pick(hosts...)
			if chance(65) {
				host = pick("a.example.com", "b.example.com", "10.0.0.1", strings.TrimPrefix(names[0], "*."))
			}
		} else if chance(20) {
			set(c, "2.5.29.17", alternatives(chance(20), pick("a.example.com", "joe@example.com", "10.0.0.1", "https://a.example.com/x")))
		}
		if !slices.ContainsFunc(c.extensions, func(e extension) bool { return e.id == "2.5.29.37" }) && chance(85) {
			set(c, "2.5.29.37", usage(map[bool]string{true: forServers, false: forClients}[server]))
		}
		leaf = finish(c, leaf, last.key)
		roots := [][]byte{root.der}
		switch random.IntN(25) {
		case 0:
			roots = append(roots, leaf.der)
		case 1:
			roots = [][]byte{leaf.der}
		case 2:
			if len(between) > 0 {
				roots = [][]byte{between[0]}
			}
		case 3:
			// Another authority of the same name.
			other := anyKey()
			c, twin := make_(root.name, nil, other, true, 20)
			roots = slices.Insert(roots, random.IntN(2), finish(c, twin, other).der)
		case 4:
			// A self-signed certificate is shown, trusted or not.
			c, alone := make_(name(true, "alone"), nil, own, chance(60), 30)
			leaf = finish(c, alone, own)
			if chance(60) {
				roots = append(roots, leaf.der)
			}
		case 5:
			if len(between) > 0 {
				between = between[1:]
			}
		case 6:
			slices.Reverse(between)
			between = append(between, root.der)
		case 7:
			// The holder of a pinned leaf's key signs.
			other := anyKey()
			c, child := make_(name(true, "mallory", "system:masters"), &leaf, other, false, 0)
			child = finish(c, child, leaf.key)
			roots = append(roots, leaf.der)
			leaf = child
		}
		one, ok := judge(all, roots, leaf.der, between, server, host)
		if !ok {
			continue
		}
		if one.Error == "" {
			good++
		}
		cases = append(cases, one)
	}
	fmt.Fprintf(os.Stderr, "chains: %d, of which %d are verified; certificates: %d\n", len(cases), good, len(all.list))
	return map[string]any{"now": now.Unix(), "certificates": all.list, "cases": cases}
}

// judge asks Go. Servers do not start with an authority that cannot be parsed, so there is no verdict then.
func judge(all *table, roots [][]byte, leaf []byte, between [][]byte, server bool, host string) (verdict, bool) {
	one := verdict{Purpose: "client", Host: host, Roots: []int{}}
	opts := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if server {
		one.Purpose, opts.KeyUsages, opts.DNSName = "server", nil, host
	}
	for _, der := range roots {
		one.Roots = append(one.Roots, all.add(der))
		root, err := x509.ParseCertificate(der)
		if err != nil {
			return one, false
		}
		opts.Roots.AddCert(root)
	}
	one.Chain = append(one.Chain, all.add(leaf))
	for _, der := range between {
		one.Chain = append(one.Chain, all.add(der))
	}
	shown, err := x509.ParseCertificate(leaf)
	for _, der := range between {
		middle, failed := x509.ParseCertificate(der)
		if failed != nil {
			err = failed
			continue
		}
		opts.Intermediates.AddCert(middle)
	}
	if err == nil {
		_, err = shown.Verify(opts)
	}
	if err != nil {
		one.Error = err.Error()
		return one, true
	}
	one.Name, one.Groups = shown.Subject.CommonName, shown.Subject.Organization
	return one, true
}
