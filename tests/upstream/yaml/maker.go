package main

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Random documents: values in all spellings, some of them spoilt afterwards.
type maker struct {
	*rand.Rand
	anchors []string
}

func (m *maker) pick(from ...string) string { return from[m.Intn(len(from))] }

func (m *maker) chance(of int) bool { return m.Intn(of) == 0 }

var words = []string{
	"a", "b", "name", "key", "x-y", "two words", "é", "日本", "a:b", "a#b", "a #b", "a: b", "-a", "- a", "?a", "? a", ":a", "@a", "`a", "%a",
	"&a", "*a", "!a", "|a", ">a", "a,b", "[a", "a]", "{a", "a}", "'", "\"", "a'b", "a\"b", "\\", "a\\nb", "#", "-", "--", "---", "...", "--- a",
	"=", "<<", "~", "", " ", "/", "a/b", "a.b.c/d", "*.example.com", "0.0.0.0", "10.0.0.0/8", "100m", "1Gi", "1e3m", "$(VAR)", "{{ a }}", "a\tb", "\t",
}

var scalars = []string{
	"null", "Null", "NULL", "nUll", "true", "True", "TRUE", "tRue", "false", "yes", "Yes", "YES", "yEs", "no", "on", "On", "off", "OFF", "y", "Y", "n", "N",
	"t", "f", "o", "F", ".inf", ".Inf", "+.inf", "-.INF", ".nan", ".NaN", ".NAN", "-.nan", "0", "-0", "+0", "1", "-1", "+1", "00", "01", "08", "0777", "-0777",
	"0o17", "0O17", "0o8", "0x1F", "0X1f", "-0x1f", "+0x1f", "0xg", "0b101", "0B101", "-0b101", "+0b101", "0b2", "1_000", "_1", "1_", "1__0", "0_7", "0x_1f", "0x1_f",
	"1.0", "1.", ".5", "-.5", "+.5", "1.5e3", "1e3", "1E3", "1e+3", "1e-3", "1e", "e1", ".e1", "1.e1", "1e400", "-1e400", "1e-400", "1.5.5", ".", "..", "+", "+-1", "--1",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e20", "1e21", "123456789012345678901",
	"0.1", "0.000001", "0.0000001", "1.7976931348623157e308", "5e-324", "3.4028235e38", "16777217.0", "0x1p4", "0x1.8p1", "infinity", "inf", "+inf", "-Inf", "nan", ".infinity", ".1_0", ".1e1_0", "._1",
	"12:30", "1:2:3", "12:30:45.5", "-1:30", "190:20:30", "2001-01-01", "2001-1-1", "2001-01-01T00:00:00Z", "2001-01-01t00:00:00Z", "2001-12-14 21:59:43.10", "2001-12-14 21:59:43.10 -5",
	"2001-02-30", "2001-01-01T1:2:3+01:00", "2001-01-01T00:00Z", "0001-01-01", "20010101", "2001-01-01T00:00:00", "1,000", "0,5", "1 000", "1#", "0.", "-", "0.0", "-0.0", "1e0", "100e-2",
}

func (m *maker) number() string {
	var text strings.Builder
	for range 1 + m.Intn(8) {
		text.WriteString(m.pick("0", "1", "7", "8", "9", "5", ".", "-", "+", "_", "e", "E", "x", "0x", "0b", "0o", "a", "F", "p", ":", "inf", "T", "Z"))
	}
	return text.String()
}

func (m *maker) text() string {
	switch m.Intn(8) {
	case 0, 1:
		return m.pick(scalars...)
	case 2:
		return m.number()
	case 3, 4, 5:
		return m.pick(words...)
	case 6:
		return m.pick(words...) + m.pick(" ", "\n", "\n\n", "\n ", " \n", ": ", "") + m.pick(words...) + m.pick("", "", "\n", "\n\n", " ")
	default:
		return strings.Repeat(m.pick(words...)+m.pick(" ", "", "-"), m.Intn(40))
	}
}

// A value that JSON can hold.
func (m *maker) value(depth int) any {
	switch kind := m.Intn(8); {
	case kind < 2 && depth > 0:
		fields := map[string]any{}
		for range m.Intn(4) {
			fields[m.text()] = m.value(depth - 1)
		}
		return fields
	case kind < 4 && depth > 0:
		items := []any{}
		for range m.Intn(4) {
			items = append(items, m.value(depth-1))
		}
		return items
	case kind == 4:
		return []any{nil, true, false, int64(m.Intn(1000) - 500), m.NormFloat64() * 1e6, 1e30 * m.Float64(), 1e-9 * m.Float64(), m.Int63(), uint64(1) << 63}[m.Intn(9)]
	default:
		return m.text()
	}
}

func (m *maker) document() string {
	text := m.bare()
	if m.chance(3) {
		text = m.pick("---\n", "---\n", "# a\n---\n", "%YAML 1.1\n---\n", "\ufeff", "--- ", "---\n---\n", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n", "%YAML 2.0\n---\n", "%TAG !e! tag:e,2000:\n---\n", "%FOO\n---\n", "%YAML 1.1\n%YAML 1.1\n---\n", "# a\n", "\n\n", "\ufeff", "...\n", "%YAML 1.1\n", "\t\n", "---\r\n") + text
	}
	if m.chance(2) {
		text += m.pick("---\n", "---", "...\n", "...", "--- # a\n", "---\n# a\n", "...\n# a\n", "---\n"+m.bare(), "...\n"+m.bare(), "...\n---\n"+m.bare(), "--- "+m.bare(), "...\n{[", "---\n]", "# a\n", "\n\n", " ", "\t", "\x00", "...a\n", "---a\n", "----\n", " ---\n", "}\n", "- a\n", "a\n", "%YAML 1.1\n---\n")
	}
	if m.chance(8) {
		text = strings.ReplaceAll(text, "\n", m.pick("\r\n", "\r", "\u0085", "\u2028"))
	}
	if m.chance(3) {
		text = m.spoilt(text)
	}
	if m.chance(60) {
		text = m.encoded(text)
	}
	return text
}

func (m *maker) bare() string {
	switch m.Intn(7) {
	case 0:
		return m.pick(scalars...) + "\n"
	case 6:
		// Keys that come twice.
		text := ""
		for range 2 + m.Intn(4) {
			text += m.pick("a", "b", "1", "\"1\"", "1.0", "true") + ": " + m.pick("1", "{b: 1}", "&a {c: 1, b: 2}", "{c: 1, c: 2}", "\n  b: 1\n  b: 2", "b") + "\n"
		}
		return text
	case 1:
		return m.flow(3) + "\n"
	case 2:
		var text strings.Builder
		for range m.Intn(12) {
			text.WriteString(m.pick(append(words, "\n", "\n  ", " ", ": ", "- ", ", ", "? ", "[", "]", "{", "}", "&a ", "*a ", "!!str ", "|\n", ">\n", "<<: ")...))
		}
		return text.String()
	default:
		return m.block(0, 4)
	}
}

// Takes out, doubles or puts in a few characters.
func (m *maker) spoilt(text string) string {
	for range 1 + m.Intn(2) {
		at := m.Intn(len(text) + 1)
		for at < len(text) && text[at]&0xc0 == 0x80 {
			at++
		}
		end := min(len(text), at+m.Intn(3))
		for end < len(text) && text[end]&0xc0 == 0x80 {
			end++
		}
		with := m.pick("", "", "", ":", ": ", " ", "  ", "\t", "\n", "-", "- ", "?", "? ", "#", " #", "'", "\"", "\\", ",", "[", "]", "{", "}", "&", "*", "!", "|", ">", "%", "@", "`", "~", "\r", "\u0001", "\u007f", "\ufeff", "\u00a0", "---\n", "...\n", "<<: ", "\\x41", "\\u00e9", "\\ud83d\\ude00", "\\U0001f600", "\\UFFFFFFFF", "\\q", "\\\n")
		text = text[:at] + with + text[end:]
	}
	return text
}

func (m *maker) encoded(text string) string {
	var out []byte
	switch m.Intn(4) {
	case 0:
		return text + m.pick("\xff", "\xc3", "\xe2\x82", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xc3(") + m.pick("", "\n")
	case 1:
		out = []byte{0xff, 0xfe}
		for _, unit := range utf16.Encode([]rune(text)) {
			out = append(out, byte(unit), byte(unit>>8))
		}
	case 2:
		out = []byte{0xfe, 0xff}
		for _, unit := range utf16.Encode([]rune(text)) {
			out = append(out, byte(unit>>8), byte(unit))
		}
	default:
		out = append([]byte{0xff, 0xfe}, m.pick("a", "a\x00b", "\x00\xd8a\x00", "\x00\xdc", "\x00\xd8", "a\x00\x00\xd8\x00\xd8")...)
	}
	return string(out)
}

func (m *maker) properties() string {
	switch m.Intn(12) {
	case 0:
		name := m.pick("a", "b", "c1", "d-e", "a", "b", "c1", "é")
		m.anchors = append(m.anchors, name)
		return "&" + name + " "
	case 1:
		return m.pick("!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "!!binary ", "!!timestamp ", "!!map ", "!!seq ", "!!set ", "!!omap ", "!!merge ", "! ", "!a ", "!<tag:yaml.org,2002:str> ", "!<tag:yaml.org,2002:int> ", "!e!a ", "!!foo ", "!<!> ", "!! ")
	default:
		return ""
	}
}

func (m *maker) alias() string {
	if len(m.anchors) == 0 && m.chance(3) || m.chance(20) {
		return m.pick("*a", "*nobody", "*a1")
	}
	if len(m.anchors) == 0 {
		return "none"
	}
	return "*" + m.anchors[m.Intn(len(m.anchors))]
}

func (m *maker) key() string {
	switch m.Intn(12) {
	case 0, 1:
		return m.pick(scalars...)
	case 2:
		return m.pick("<<", "\"<<\"", "!!merge <<", "!!str <<", "!!str 1", "!!binary YQ==", "a", "[a]", "{a: b}", "''", "\"a\\nb\"", "=")
	case 3:
		return quotedAs(m.pick("'", "\""), m.text())
	case 4:
		return m.pick("n", "a1", strings.Repeat("k", 100+m.Intn(1000)))
	default:
		return m.pick("a", "b", "c", "name", "spec", "x-y", "a.b/c", "d e")
	}
}

func quotedAs(quote, text string) string {
	if quote == "'" {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return strconv.Quote(text)
}

func (m *maker) scalar(indent int) string {
	switch m.Intn(8) {
	case 0:
		return quotedAs("'", m.text())
	case 1:
		return quotedAs("\"", m.text())
	case 2:
		if indent < 0 {
			return m.pick(words...)
		}
		lines := strings.Split(m.text()+"\n"+m.text(), "\n")
		pad := strings.Repeat(" ", indent+m.Intn(3))
		return m.pick("|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "|-1", "|0", "| # a", "|9") + "\n" + pad + strings.Join(lines, "\n"+pad) + m.pick("", "\n", "\n\n")
	case 3:
		return m.pick(words...)
	case 4:
		return m.number()
	case 5:
		return base64.StdEncoding.EncodeToString([]byte(m.text()))
	default:
		return m.pick(scalars...)
	}
}

func (m *maker) flow(depth int) string {
	if m.chance(12) {
		return m.alias()
	}
	gap := m.pick("", "", " ", "\n ", " # a\n ", "\t")
	switch kind := m.Intn(5); {
	case kind == 0 && depth > 0:
		var items []string
		for range m.Intn(4) {
			item := m.flow(depth - 1)
			if m.chance(8) {
				item = m.pick("? ", "") + m.key() + m.pick(": ", ":") + item
			}
			items = append(items, item)
		}
		return m.properties() + "[" + gap + strings.Join(items, m.pick(",", ", ", " ,")) + m.pick("", "", ",") + gap + "]"
	case kind == 1 && depth > 0:
		var fields []string
		for range m.Intn(4) {
			fields = append(fields, m.pick("", "", "", "? ")+m.key()+m.pick(": ", ": ", ": ", ":", " : ", "")+m.flow(depth-1))
		}
		return m.properties() + "{" + gap + strings.Join(fields, m.pick(",", ", ")) + m.pick("", "", ",") + gap + "}"
	default:
		return m.properties() + m.scalar(-1)
	}
}

func (m *maker) block(indent, depth int) string {
	pad := strings.Repeat(" ", indent)
	var text strings.Builder
	mapping := m.chance(2)
	for range 1 + m.Intn(4) {
		if m.chance(12) {
			text.WriteString(m.pick("\n", "# a\n", pad+"# a\n", pad+"  \n", "  # a\n"))
		}
		switch {
		case mapping && m.chance(10):
			fmt.Fprintf(&text, "%s? %s\n%s: %s\n", pad, m.key(), pad, m.flow(1))
			continue
		case mapping && len(m.anchors) > 0 && m.chance(5):
			fmt.Fprintf(&text, "%s<<: %s\n", pad, m.pick(m.alias(), "["+m.alias()+", "+m.alias()+"]", "{a: 1}"))
			continue
		case mapping:
			text.WriteString(pad + m.key() + m.pick(":", ":", ":", ":", " :"))
		default:
			text.WriteString(pad + "-")
		}
		switch kind := m.Intn(6); {
		case kind < 2 && depth > 0:
			step := m.Intn(3)
			if !mapping {
				step++
			}
			properties := m.properties()
			if properties != "" {
				properties = " " + strings.TrimSpace(properties)
			}
			text.WriteString(properties + m.pick("", "", " # a") + "\n" + m.block(indent+step, depth-1))
		case kind == 2 && !mapping && depth > 0:
			text.WriteString(" " + strings.TrimLeft(m.block(indent+2, depth-1), " "))
		case kind == 3:
			text.WriteString(" " + m.flow(2) + "\n")
		default:
			text.WriteString(m.pick(" ", " ", " ", "  ", "\t", "") + m.properties() + m.scalar(indent+1) + m.pick("", "", " # a") + "\n")
		}
	}
	return text.String()
}

// Documents that people write, and the borders of what is read.
var fixed = []string{
	"", "\n", "---\n", "---\n---\n", "...\n", "# a\n", "a: 1\n---\n", "a: 1\n---\n# end\n", "a: 1\n...\n", "a: 1\n...\n{[\n", "a: 1\n---\na: 2\n", "---\na: 1\n",
	"a: b: c\n", "a: [1\n", "a: 'b\n", "a: \"b\n", "a: *b\n", "\ta: 1\n", "a:\n\tb: 1\n", "a: 1\n b: 2\n", "- a\nb: 1\n", "a: 1\n- b\n", "a: %b\n", "a: @b\n", "a: `b\n",
	"a: &b {c: 1}\nd:\n  <<: *b\n", "a: &b [1]\nd:\n  <<: *b\n", "a: &b\n  c: *b\n", "<<: {a: 1}\na: 2\n", "a: 2\n<<: {a: 1}\n", "<<: [{a: 1}, {a: 2, b: 3}]\n", "<<: 1\n",
	"1: a\n1.5: b\ntrue: c\n", "null: a\n", "~: a\n", "? [a]\n: b\n", "? {a: 1}\n: b\n", "18446744073709551615: a\n", "a: .inf\n", "a: .nan\n", ".inf: a\n", "1e20: a\n", "2001-01-01: a\n",
	"!!binary YQ==: b\n", "a: !!binary YWI=\n", "a: !!binary 'a b'\n", "a: !!binary /w==\n", "a: !!int '1'\n", "a: !!int 1.5\n", "a: !!float 1\n", "a: !!bool yes\n", "a: !!null ''\n", "a: !!str 1\n",
	"a: 1\na: 2\nb:\n  c: 1\n  c: 2\n", "a: 1\n'a': 2\n", "1: a\n1: b\n", "[a, a]: 1\n", "{a, b: , c}", "[a: b]", "{a:1}", "{\"a\":1}", "[a:b]", "[http://a]", "{a: http://b}",
	strings.Repeat("k", 1023) + ": 1\n", strings.Repeat("k", 1025) + ": 1\n", "{\"" + strings.Repeat("k", 1025) + "\":1}", "? " + strings.Repeat("k", 2000) + "\n: 1\n",
	bomb(9), strings.Repeat("a: &a [", 3), "a: |\n  b\n c\n", "a: |\n\n    b\n  c\n", "a: >\n  b\n  c\n\n  d\n", "a: \"\\ud83d\\ude00\"\n", "a: \"\\u0041\\x42\\U00000043\"\n", "a: \"b\\\n  c\"\n",
	strings.Repeat("a: 1\n", 200), "{" + strings.Repeat("a: 1, ", 200) + "}", "a: 0x8000000000000000\n", "a: -0x8000000000000001\n", "a: 0b" + strings.Repeat("1", 64) + "\n", "a: 0b" + strings.Repeat("1", 65) + "\n",
}

// Each line stands for ten times what the one before stands for.
func bomb(lines int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for n := 1; n < lines; n++ {
		before := fmt.Sprintf("*a%d", n-1)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", n, n, strings.Join([]string{before, before, before, before, before, before, before, before, before, before}, ", "))
	}
	return text
}
