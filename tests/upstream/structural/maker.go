package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
)

// Makes structural schemas, and objects that fit them, nearly fit them, or do not.
type maker struct {
	*rand.Rand
	// Makes no metadata of the wrong type: definitions may not have it in defaults.
	careful bool
	// Makes rules of which at most the expressions are wrong.
	tidy bool
}

func (m *maker) chance(percent int) bool {
	return m.Intn(100) < percent
}

func pick[T any](m *maker, from ...T) T {
	return from[m.Intn(len(from))]
}

var names = []string{"a", "b", "c", "name", "port", "protocol", "kind", "x-y", "long_name"}

func (m *maker) root() object {
	properties := object{"spec": m.node(0), "status": m.node(1)}
	if m.chance(20) {
		properties["metadata"] = object{"type": "object", "properties": object{
			"name": object{"type": "string", "maxLength": pick(m, 1, 3, 30), "pattern": "^[a-z-]*$"},
		}}
	}
	if m.chance(15) {
		properties["kind"] = object{"type": "string", "enum": []any{"Gadget", "Other"}}
		properties["apiVersion"] = object{"type": "string", "minLength": pick(m, 1, 30)}
	}
	root := object{"type": "object", "properties": properties}
	if m.chance(20) {
		root["required"] = []any{pick(m, "spec", "status", "more")}
	}
	if m.chance(10) {
		root["x-kubernetes-preserve-unknown-fields"] = true
		root["minProperties"] = pick(m, 1, 9)
	}
	if m.chance(10) {
		m.junctors(root, 1)
	}
	return root
}

func (m *maker) node(depth int) object {
	kinds := []string{"string", "string", "integer", "number", "boolean", "either", "any"}
	if depth < 4 {
		kinds = append(kinds, "object", "object", "object", "object", "map", "array", "array", "set", "list-map", "list-map", "embedded", "open")
	}
	kind := pick(m, kinds...)
	if depth == 0 {
		kind = pick(m, "object", "object", "object", "map", "open", "list-map")
	}
	node := m.of(kind, depth)
	if m.chance(15) {
		node["nullable"] = true
	}
	if m.chance(20) {
		m.junctors(node, 0)
	}
	if m.chance(20) && depth > 0 {
		m.careful = true
		node["default"] = m.object(node, 0)
		m.careful = false
	}
	return node
}

func (m *maker) of(kind string, depth int) object {
	switch kind {
	case "object":
		node := object{"type": "object", "properties": m.properties(depth)}
		m.keywords(node)
		if m.chance(10) {
			node["x-kubernetes-map-type"] = pick(m, "atomic", "granular")
		}
		return node
	case "open":
		node := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		if m.chance(70) {
			node["properties"] = m.properties(depth)
		}
		m.keywords(node)
		return node
	case "embedded":
		node := object{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
		if m.chance(60) {
			node["properties"] = m.properties(depth)
		}
		return m.withoutKind(node)
	case "map":
		node := object{"type": "object", "additionalProperties": m.node(depth + 1)}
		if m.chance(25) {
			node["additionalProperties"] = true
		}
		m.keywords(node)
		if m.chance(10) {
			node["x-kubernetes-map-type"] = pick(m, "atomic", "granular")
		}
		return node
	case "array":
		node := object{"type": "array", "items": m.node(depth + 1)}
		m.keywords(node)
		if m.chance(30) {
			node["x-kubernetes-list-type"] = "atomic"
		}
		return node
	case "set":
		items := m.of(pick(m, "string", "integer", "number", "boolean"), depth)
		if m.chance(15) {
			items = object{"type": "object", "x-kubernetes-map-type": "atomic", "properties": m.properties(depth + 2)}
		}
		node := object{"type": "array", "x-kubernetes-list-type": "set", "items": items}
		m.keywords(node)
		return node
	case "list-map":
		return m.listMap(depth)
	case "either":
		node := object{"x-kubernetes-int-or-string": true}
		if m.chance(50) {
			node["anyOf"] = []any{object{"type": "integer"}, object{"type": "string"}}
		}
		m.keywords(node)
		return node
	case "any":
		node := object{"x-kubernetes-preserve-unknown-fields": true}
		m.keywords(node)
		return node
	}
	node := object{"type": kind}
	m.keywords(node)
	return node
}

func (m *maker) withoutKind(node object) object {
	if properties, ok := node["properties"].(object); ok {
		delete(properties, "kind")
	}
	return node
}

func (m *maker) listMap(depth int) object {
	properties := m.properties(depth + 1)
	keys := []any{"name"}
	properties["name"] = object{"type": pick(m, "string", "integer")}
	required := []any{"name"}
	if m.chance(50) {
		keys = append(keys, "protocol")
		properties["protocol"] = object{"type": "string", "default": "TCP"}
	}
	if m.chance(20) {
		properties["name"] = object{"type": "string", "default": "main"}
		required = nil
	}
	items := object{"type": "object", "properties": properties}
	if required != nil && m.chance(80) {
		items["required"] = required
	}
	node := object{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}
	m.keywords(node)
	return node
}

func (m *maker) properties(depth int) object {
	properties := object{}
	for n := 1 + m.Intn(4); n > 0; n-- {
		properties[pick(m, names...)] = m.node(depth + 1)
	}
	return properties
}

var formats = []string{"date", "date-time", "datetime", "duration", "email", "hostname", "ipv4", "ipv6", "cidr", "mac",
	"uuid", "byte", "uri", "k8s-short-name", "password", "frob", "int32", "ip-v4"}

// Keywords of a node's type, and now and then one of another type.
func (m *maker) keywords(node object) {
	kind, _ := node["type"].(string)
	all := m.chance(3)
	each := func(kinds string, of string) bool {
		return (all || kind == of || kind == "" && m.chance(30)) && m.chance(25) && kinds != ""
	}
	if each("s", "string") {
		node["maxLength"] = m.Intn(6)
	}
	if each("s", "string") {
		node["minLength"] = m.Intn(4)
	}
	if each("s", "string") {
		node["pattern"] = pick(m, "^a", "b$", "^[a-z0-9]+(-[a-z0-9]+)*$", `^\d+$`, "(?i)^foo", `\w{2,}`, "[[:upper:]]")
	}
	if each("s", "string") {
		node["format"] = pick(m, formats...)
	}
	number := "integer"
	if kind == "number" {
		number = "number"
	}
	if each("n", number) {
		node["minimum"] = pick[any](m, 0, 1, -3, 2.5, 1e3, -1e20)
		if m.chance(30) {
			node["exclusiveMinimum"] = true
		}
	}
	if each("n", number) {
		node["maximum"] = pick[any](m, 0, 10, 7.5, 100, 1e20, 2147483648)
		if m.chance(30) {
			node["exclusiveMaximum"] = true
		}
	}
	if each("n", number) {
		node["multipleOf"] = pick[any](m, 1, 2, 3, 0.5, 0.1, 2.5, 0, -1)
	}
	if each("n", number) {
		node["format"] = pick(m, "int32", "int64", "float", "double", "byte")
	}
	if each("a", "array") {
		node["minItems"] = m.Intn(3)
	}
	if each("a", "array") {
		node["maxItems"] = m.Intn(4)
	}
	if each("o", "object") {
		node["minProperties"] = m.Intn(3)
	}
	if each("o", "object") {
		node["maxProperties"] = m.Intn(4)
	}
	if each("o", "object") {
		node["required"] = []any{pick(m, names...), pick(m, names...)}
	}
	if m.chance(8) {
		node["enum"] = m.members(kind)
	}
}

func (m *maker) members(kind string) []any {
	switch kind {
	case "string":
		return []any{"a", "b", pick(m, "abc", "c", "<&>")}
	case "integer", "number":
		return []any{1, 2, pick[any](m, 3, 2.5, 10)}
	case "boolean":
		return []any{m.chance(50)}
	case "array":
		return []any{[]any{}, []any{"a"}, []any{1}}
	case "object":
		return []any{object{}, object{"a": 1}, object{"b": "<", "a": 2.5}}
	}
	return []any{"a", 1, pick[any](m, 2.5, true, nil, object{"a": 1}, []any{1})}
}

func (m *maker) junctors(node object, depth int) {
	list := func(n int) []any {
		var all []any
		for ; n > 0; n-- {
			all = append(all, m.restriction(node, depth))
		}
		return all
	}
	if _, either := node["x-kubernetes-int-or-string"]; either {
		if m.chance(50) {
			node["allOf"] = list(1)
		}
		return
	}
	switch m.Intn(5) {
	case 0:
		node["anyOf"] = list(1 + m.Intn(3))
	case 1:
		node["oneOf"] = list(1 + m.Intn(3))
	case 2:
		node["allOf"] = list(1 + m.Intn(3))
	case 3:
		node["not"] = m.restriction(node, depth)
	default:
		node["anyOf"] = list(2)
		node["allOf"] = list(2)
		node["not"] = m.restriction(node, depth)
	}
}

// What may stand below a junctor of a node.
func (m *maker) restriction(node object, depth int) object {
	kind, _ := node["type"].(string)
	all := object{"type": kind}
	m.keywords(all)
	delete(all, "type")
	if properties, ok := node["properties"].(object); ok && m.chance(70) {
		below := object{}
		for _, name := range names {
			property, ok := properties[name].(object)
			if ok && m.chance(40) && name != "metadata" && depth < 3 {
				below[name] = m.restriction(property, depth+1)
			}
		}
		all["properties"] = below
		if m.chance(40) {
			all["required"] = []any{pick(m, names...)}
		}
	}
	if items, ok := node["items"].(object); ok && m.chance(50) && depth < 3 {
		all["items"] = m.restriction(items, depth+1)
	}
	if m.chance(10) && depth < 3 {
		all["not"] = m.restriction(node, depth+1)
	}
	if m.chance(10) && depth < 3 {
		all["oneOf"] = []any{m.restriction(node, depth+1), m.restriction(node, depth+1)}
	}
	return all
}

func (m *maker) meta(sent object) {
	sent["apiVersion"] = pick(m, "example.com/v1", "v1")
	sent["kind"] = pick(m, "Gadget", "Other", "Third")
	sent["metadata"] = m.metadata()
}

func (m *maker) metadata() object {
	metadata := object{"name": pick(m, "one", "two-parts", "Upper")}
	if m.chance(20) {
		metadata["labels"] = object{"a": pick[any](m, "x", "y", "x")}
	}
	if m.chance(5) && !m.careful {
		metadata["labels"] = object{"a": 1}
	}
	if m.chance(10) {
		metadata["odd"] = 1
	}
	return metadata
}

var words = []string{"", "a", "b", "abc", "c", "ä", "üüü", "foo-bar", "FOO", "A1", "12", "<&>", "10.0.0.1", "010.0.0.1", "::1",
	"10.0.0.0/8", "2020-01-01", "2020-13-01", "2020-01-01T10:00:00Z", "5s", "3 weeks", "x@example.com", "example.com",
	"00:11:22:33:44:55", "YWJj", "http://example.com/a", "123e4567-e89b-12d3-a456-426614174000", "TCP", "a\nb\"\u2028"}

func (m *maker) scalar() any {
	return pick[any](m, pick(m, words...), m.Intn(12)-3, 1.5, 3.0, true, 97, 3000000000, 1e40, -0.5, 1e21, 4611686018427387904, false, 0.1)
}

// A value for a schema; nine of ten times of its type.
func (m *maker) object(schema object, depth int) any {
	if schema == nil || m.chance(4) && !m.careful {
		return m.anything(depth)
	}
	if m.chance(4) && depth > 0 {
		return nil
	}
	if enum, ok := schema["enum"].([]any); ok && m.chance(60) {
		return enum[m.Intn(len(enum))]
	}
	if properties, ok := schema["properties"].(object); ok {
		return m.struct_(schema, properties, depth)
	}
	if items, ok := schema["items"].(object); ok {
		var all = []any{}
		for n := m.Intn(4); n > 0; n-- {
			all = append(all, m.object(items, depth+1))
		}
		if len(all) > 1 && m.chance(20) {
			all[0] = all[len(all)-1]
		}
		return all
	}
	kind, _ := schema["type"].(string)
	switch kind {
	case "string":
		return pick(m, words...)
	case "integer":
		return pick[any](m, m.Intn(12)-3, m.Intn(12)-3, 3.0, 3000000000, 100)
	case "number":
		return pick[any](m, m.Intn(12)-3, 1.5, 2.5, 0.3, 1e40, -0.5, 7.5)
	case "boolean":
		return m.chance(50)
	case "object":
		all := object{}
		values, _ := schema["additionalProperties"].(object)
		for n := m.Intn(4); n > 0; n-- {
			all[pick(m, "k", "l", "x.y", "a", "b")] = m.object(values, depth+1)
		}
		if schema["x-kubernetes-embedded-resource"] == true && m.chance(80) {
			m.meta(all)
		}
		return all
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return pick[any](m, m.Intn(12)-3, pick(m, words...), 97, 2.0, 2.5)
	}
	return m.anything(depth)
}

func (m *maker) struct_(schema, properties object, depth int) any {
	all := object{}
	for _, name := range append([]string{"spec", "status"}, names...) {
		property, ok := properties[name].(object)
		if ok && m.chance(75) {
			all[name] = m.object(property, depth+1)
		}
	}
	if m.chance(15) {
		all[pick(m, "odd", "more", "c")] = m.anything(depth + 1)
	}
	if schema["x-kubernetes-embedded-resource"] == true && m.chance(80) {
		m.meta(all)
	}
	return all
}

func (m *maker) anything(depth int) any {
	if depth > 4 || m.chance(50) {
		return m.scalar()
	}
	if m.chance(50) {
		return []any{m.anything(depth + 1), m.anything(depth + 1)}
	}
	return object{pick(m, names...): m.anything(depth + 1), "k": m.anything(depth + 1)}
}

// The value with something in it changed, or not.
func (m *maker) change(value any, schema object) any {
	switch value := value.(type) {
	case object:
		changed := object{}
		properties, _ := schema["properties"].(object)
		values, _ := schema["additionalProperties"].(object)
		for _, name := range sorted(value) {
			below, ok := properties[name].(object)
			if !ok {
				below = values
			}
			changed[name] = value[name]
			if m.chance(25) && name != "metadata" {
				changed[name] = m.change(value[name], below)
			}
			if m.chance(3) {
				delete(changed, name)
			}
		}
		if m.chance(10) && len(properties) > 0 {
			name := pick(m, sorted(properties)...)
			if name != "metadata" {
				below, _ := properties[name].(object)
				changed[name] = m.object(below, 1)
			}
		}
		return changed
	case []any:
		changed := append([]any{}, value...)
		items, _ := schema["items"].(object)
		for index := range changed {
			if m.chance(25) {
				changed[index] = m.change(changed[index], items)
			}
		}
		if m.chance(20) {
			m.Shuffle(len(changed), func(i, j int) { changed[i], changed[j] = changed[j], changed[i] })
		}
		if m.chance(20) {
			changed = append(changed, m.object(items, 1))
		}
		return changed
	}
	return m.object(schema, 1)
}

func sorted[T any](from map[string]T) []string {
	var all []string
	for name := range from {
		all = append(all, name)
	}
	for i := range all {
		for j := i; j > 0 && all[j-1] > all[j]; j-- {
			all[j-1], all[j] = all[j], all[j-1]
		}
	}
	return all
}

// Texts of each format, good ones, and ones with something changed.
func writeFormats(texts func(format, text string) bool) {
	m := &maker{Rand: rand.New(rand.NewSource(7))}
	good := []string{"507f1f77bcf86cd799439011", "YWJj", "YWI=", "YQ==", "10.0.0.0/8", "2001:db8::/32", "::ffff:1.2.3.4/96", "4220855426222389",
		"5139288802098206", "374953669708156", "6011464355444102", "3548209662790989", "30190239451016", "2020-02-29", "2021-02-29", "0000-01-01",
		"2020-01-01T10:00:00Z", "2020-01-01t10:00:00.123+01:00", "2020-01-01T23:59:60Z", "2020-01-01T10:00:00x5Z", "22 ns", "1h30m", "-5s", "3 weeks 2d",
		"1.5h", "300 yearsago 2m", "99999999999999999999 s", "x@example.com", "Full Name <a.b@c.de>", "\"q u\"@x.y", "a@[1.2.3.4]", "g: a@b;", "a@b (comment)",
		"#FFF", "ff00aa", "rgb(0, 31,255)", "rgb(256,0,0)", "rgb(01,0,0)", "example.com", "a-b.example.com.", "foo_bar", "ünïcode.de", "localhost", "1.2.3.4",
		"010.001.2.3", "::ffff:1.2.3.4", "::1", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "3836221195", "1-61729-085-8", "3 401 01319 X", "978-4-87311-368-5",
		"00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "001122334455", "00:11:22:33:44:55:66:77", "111-22-3333", "111 22 3333", "1112233333",
		"http://example.com/a?b#c", "/abs/path", "mailto:x@y", "http://[::1]:80/", "http://[fe80::1%25en0]/", "http://a b/", "http://a/%zz", "http://u:p@h:8x/",
		"http://h:1:2/", "ftp://h:1:2/", "*", "//host/x", "http://%41/", "123e4567-e89b-12d3-a456-426614174000", "123E4567e89b32d3a456426614174000",
		"123e4567-e89b-52d3-a456-426614174000", "a-name", "my.long-name.9", "-a", "A", "", " ", "a.b", "A1-", "é", "0", "x"}
	all := []string{"bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6", "isbn",
		"isbn10", "isbn13", "k8s-long-name", "k8s-short-name", "mac", "password", "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5"}
	letters := []rune("0123456789abcfxXZTtz.:-/@%[]#+_ ()<>\"\\,;=é")
	tried := append([]string{}, good...)
	for _, text := range good {
		for n := 0; n < 3; n++ {
			runes := []rune(text)
			if len(runes) == 0 {
				break
			}
			at := m.Intn(len(runes))
			switch m.Intn(3) {
			case 0:
				runes[at] = letters[m.Intn(len(letters))]
			case 1:
				runes = append(runes[:at], runes[at+1:]...)
			default:
				runes = append(runes[:at], append([]rune{letters[m.Intn(len(letters))]}, runes[at:]...)...)
			}
			tried = append(tried, string(runes))
		}
	}
	for _, format := range all {
		for _, text := range tried {
			quoted, err := json.Marshal(text)
			must(err)
			fmt.Printf("%s\t%t\t%s\n", format, texts(format, text), quoted)
		}
	}
}
