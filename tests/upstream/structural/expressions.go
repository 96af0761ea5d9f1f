package main

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand"
	"os"
	"reflect"
	"regexp"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// A schema with rules, that of the stored definition if it is an update, and what upstream says of the definition.
type ruled struct {
	Schema json.RawMessage `json:"schema"`
	Old    json.RawMessage `json:"old,omitempty"`
	Errors []string        `json:"errors"`
}

// Upstream makes a new name each time.
var selfType = regexp.MustCompile("selfType[0-9]+")

func writeExpressions(count int) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for index := 0; index < count; index++ {
		m := &maker{Rand: rand.New(rand.NewSource(int64(index)))}
		m.tidy = m.chance(65)
		schema := m.expressiveRoot()
		spoiled := !m.tidy && m.chance(10)
		if spoiled {
			m.spoil(schema, 0)
		}
		found := ruled{Schema: text(schema)}
		m.tidy = true
		if !spoiled && m.chance(30) {
			found.Old = found.Schema
			if m.chance(50) {
				schema["description"] = "changed"
				properties, _ := schema["properties"].(object)
				if spec, ok := properties["spec"].(object); ok {
					m.rule(spec, "object")
				}
			}
			found.Schema = text(schema)
		}
		found.Errors = verdicts3(scheme, found)
		if found.Errors != nil {
			must(encoder.Encode(found))
		}
	}
}

func text(schema object) json.RawMessage {
	text, err := json.Marshal(schema)
	must(err)
	return text
}

// Upstream visits properties in random order, and names only some of expressions that cost the same.
func verdicts3(scheme *runtime.Scheme, of ruled) []string {
	first := verdictOf(scheme, of)
	for n := 0; n < 2; n++ {
		if !reflect.DeepEqual(first, verdictOf(scheme, of)) {
			return nil
		}
	}
	return first
}

func verdictOf(scheme *runtime.Scheme, of ruled) []string {
	now := definitionOf(scheme, of.Schema)
	var found []string
	if of.Old == nil {
		found = texts(crdvalidation.ValidateCustomResourceDefinition(context.Background(), now))
	} else {
		found = texts(crdvalidation.ValidateCustomResourceDefinitionUpdate(context.Background(), now, definitionOf(scheme, of.Old)))
	}
	all := []string{}
	for _, text := range found {
		all = append(all, selfType.ReplaceAllString(text, "selfType"))
	}
	return all
}

func definitionOf(scheme *runtime.Scheme, schema json.RawMessage) *apiextensions.CustomResourceDefinition {
	var props v1.JSONSchemaProps
	must(json.Unmarshal(schema, &props))
	definition := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{
		Group: "example.com",
		Scope: v1.NamespaceScoped,
		Names: v1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
		Versions: []v1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &props},
		}},
	}}
	definition.Name, definition.ResourceVersion = "widgets.example.com", "1"
	scheme.Default(definition)
	var internal apiextensions.CustomResourceDefinition
	must(scheme.Convert(definition, &internal, nil))
	return &internal
}

func (m *maker) expressiveRoot() object {
	spec := m.expressive("object", 0)
	root := object{"type": "object", "properties": object{"spec": spec}}
	properties := root["properties"].(object)
	if m.chance(40) {
		properties["status"] = m.expressive("object", 2)
	}
	if m.chance(15) {
		name := object{"type": "string", "maxLength": pick(m, 10, 63, 1000)}
		m.rule(name, "string")
		properties["metadata"] = object{"type": "object", "properties": object{"name": name}}
	}
	if m.chance(30) {
		m.rule(root, "object")
	}
	return root
}

var widths = []int{0, 1, 3, 10, 50, 100, 1000, 20000, 1000000}

func (m *maker) expressive(kind string, depth int) object {
	node := object{"type": kind}
	bound := func(name string, percent int) {
		if m.chance(percent) {
			node[name] = pick(m, widths...)
		}
	}
	kinds := []string{"string", "string", "string", "integer", "boolean", "number", "either", "open", "typeless"}
	if depth < 4 {
		kinds = append(kinds, "array", "array", "array", "object", "object", "map", "map", "embedded")
	}
	switch kind {
	case "object", "embedded":
		properties := object{}
		for _, name := range []string{"a", "b", "name", "x-y", "in"} {
			if m.chance(55) {
				properties[name] = m.expressive(pick(m, kinds...), depth+1)
			}
		}
		properties["list"] = m.expressive("array", depth+1)
		node["type"], node["properties"] = "object", properties
		if m.chance(40) {
			node["required"] = []any{pick(m, "a", "b", "name", "x-y"), "list"}
		}
		if kind == "embedded" {
			node["x-kubernetes-embedded-resource"] = true
			if m.chance(30) {
				metadata := object{"type": "object", "properties": object{"name": object{"type": "string"}, "labels": object{"type": "object", "additionalProperties": object{"type": "string"}}}}
				if m.chance(50) {
					metadata["properties"].(object)["generateName"] = object{"type": "string", "maxLength": 7}
					properties["kind"], properties["apiVersion"] = object{"type": "string", "maxLength": 3}, object{"type": "string"}
				}
				if m.chance(50) {
					m.rule(metadata, "object")
				}
				properties["metadata"] = metadata
			}
		}
		if m.chance(10) {
			node["x-kubernetes-map-type"] = pick(m, "atomic", "granular")
		}
	case "map":
		node["type"], node["additionalProperties"] = "object", m.expressive(pick(m, kinds...), depth+1)
		bound("maxProperties", 60)
	case "array":
		items := m.expressive(pick(m, kinds...), depth+1)
		node["items"] = items
		bound("maxItems", 60)
		if properties, ok := items["properties"].(object); ok && m.chance(50) {
			properties["name"] = object{"type": "string", "maxLength": 20}
			items["required"] = []any{"name"}
			node["x-kubernetes-list-type"], node["x-kubernetes-list-map-keys"] = "map", []any{"name"}
		} else if items["type"] == "string" && m.chance(40) {
			node["x-kubernetes-list-type"] = "set"
		}
	case "string":
		bound("maxLength", 50)
		if m.chance(20) {
			node["enum"] = []any{"a", "abc", "abcdef"}
		}
		if m.chance(20) {
			node["format"] = pick(m, "date", "date-time", "duration", "byte", "uuid")
		}
	case "either":
		delete(node, "type")
		node["x-kubernetes-int-or-string"] = true
		bound("maxLength", 30)
	case "open":
		node["type"], node["x-kubernetes-preserve-unknown-fields"] = "object", true
	case "typeless":
		delete(node, "type")
		node["x-kubernetes-preserve-unknown-fields"] = true
		if m.chance(30) && depth < 4 {
			node["properties"] = object{"a": m.expressive("object", depth+1)}
		}
	}
	if m.chance(15) {
		node["nullable"] = true
	}
	percent := 22
	for m.chance(percent) {
		m.rule(node, kind)
	}
	if m.chance(8) && depth > 0 {
		m.careful = true
		node["default"] = m.object(node, 0)
		m.careful = false
	}
	return node
}

var ofEach = map[string][]string{
	"string": {"self.size() < 5", "self.matches('^[a-z]+$')", "self == oldSelf", "self.contains('abc')", "self.startsWith('a')",
		"self in ['a', 'b']", "self.includes('a')", "self.split(',').all(x, x != '')", "self.replace('a', 'bb').size() > 3", "self > oldSelf",
		"isURL(self) && url(self).getHost() == 'x'", "self.lowerAscii() == self", "self.find('[a-z]+') != ''", "timestamp(self) > timestamp('2020-01-01T00:00:00Z')"},
	"integer": {"self > 0", "self < oldSelf", "self % 2 == 0", "self > 1.5", "lists.range(self).size() < 3"},
	"number":  {"self > 0.5", "self == 1", "oldSelf >= self"},
	"boolean": {"self", "!self", "self == oldSelf"},
	"array": {"self.all(x, self.all(y, x == y))", "self.all(x, x != '')", "self.exists(x, x == self[0])", "size(self) < 10",
		"self.map(x, x).size() > 0", "self.isSorted()", "self.all(x, x in oldSelf)", "self == oldSelf", "self.all(i, x, x == self[i])",
		"self.all(x, has(x.name) && x.name != '')", "self.all(x, x.list.all(y, y != x.name))", "self.filter(x, x.list.size() > 0).size() < 3",
		"self.all(x, x.all(y, y.all(z, z == 'a')))", "self.includes(1)", "self + self == self"},
	"map": {"self.all(k, k.size() > 1)", "self.all(k, v, v != oldSelf[k])", "self.exists(k, self[k] == 'x')", "size(self) < 3", "self == oldSelf",
		"self.all(k, self.all(l, k != l || self[k] == self[l]))", "'a' in self", "self.all(k, self[k].all(x, x != k))"},
	"object": {"has(self.a)", "self.a == self.b", "size(self.a) > 0", "self.name == oldSelf.name", "self.list.all(x, x != '')", "self.list.all(x, self.list.all(y, x == y))",
		"self.list.exists(x, x.list.exists(y, y.name == x.name))", "has(self.x__dash__y)", "has(self.__in__) ? self.a == 'b' : true", "self.b.all(x, self.a.all(y, x == y))",
		"self.list == oldSelf.list", "self.metadata.name.size() > 3", "self.kind == 'x'", "self.name.matches('a+b')", "self.list.map(x, [x, x]).size() > 4"},
}

var messages = []string{"'no'", "self.name", "string(self)", "'a' + self", "1", "self.zz", "self.all(x, x)", "self.map(x, string(x)).join(',')", "string(self.size())", " ", "oldSelf == self ? 'a' : 'b'"}

func (m *maker) rule(node object, kind string) {
	if kind == "embedded" {
		kind = "object"
	}
	all := ofEach[kind]
	if len(all) == 0 || m.chance(4) {
		all = []string{"true", "self == 'a'", "type(self) == int", "self.all(x, true)", "size(self) > 1"}
	}
	rule := object{"rule": pick(m, all...)}
	switch {
	case m.chance(4):
		rule["rule"] = pick(m, "", " ", "self.", "1", "self.zz == 1", "int('a') == 1", "'a'.matches('(')", "true\n&& true", "self == null", "[1, 'a'] == self", "nobody")
	case m.chance(6):
		rule["rule"] = rule["rule"].(string) + " && " + pick(m, all...)
	}
	if m.tidy {
		if text := rule["rule"].(string); text == "" || text == " " {
			rule["rule"] = "true"
		}
		rule["message"] = "no"
		if m.chance(15) {
			rule["messageExpression"] = pick(m, messages...)
			if rule["messageExpression"] == " " {
				delete(rule, "messageExpression")
			}
		}
	} else if m.chance(15) {
		rule["message"] = pick(m, "no", " ", "a\nb", "", " x ")
	}
	if !m.tidy && m.chance(15) {
		rule["messageExpression"] = pick(m, messages...)
	}
	if !m.tidy && m.chance(6) {
		rule["reason"] = pick(m, "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate", "Odd")
	}
	if !m.tidy && m.chance(10) {
		rule["fieldPath"] = pick(m, ".a", ".list", ".name", ".zz", "['x-y']", ".a.b", ".metadata.name", ".a['k']", "a", " ", ".a.", ".a\n", "['a'", "[0]", ".list[0]", "['\\x']", ".")
	}
	if m.chance(10) {
		rule["optionalOldSelf"] = m.chance(75)
		if m.chance(50) {
			rule["rule"] = pick(m, "oldSelf.hasValue()", "oldSelf.orValue(self) == self", "!oldSelf.hasValue() || oldSelf.value() == self")
		}
	}
	rules, _ := node["x-kubernetes-validations"].([]any)
	node["x-kubernetes-validations"] = append(rules, rule)
}
