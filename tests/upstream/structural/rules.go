package main

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// A schema that something is wrong with, and what upstream says of the definition.
type refusal struct {
	Schema json.RawMessage `json:"schema"`
	Status bool            `json:"status"`
	Errors []string        `json:"errors"`
}

func writeRules(count int) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for index := 0; index < count; index++ {
		m := &maker{Rand: rand.New(rand.NewSource(int64(index)))}
		schema := m.root()
		for n := 1 + m.Intn(2); n > 0; n-- {
			m.spoil(schema, 0)
		}
		text, err := json.Marshal(schema)
		must(err)
		found := refusal{Schema: text, Status: m.chance(30)}
		var props v1.JSONSchemaProps
		must(json.Unmarshal(text, &props))
		definition := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: v1.NamespaceScoped,
			Names: v1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []v1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &props},
			}},
		}}
		if found.Status {
			definition.Spec.Versions[0].Subresources = &v1.CustomResourceSubresources{Status: &v1.CustomResourceSubresourceStatus{}}
		}
		definition.Name = "widgets.example.com"
		scheme.Default(definition)
		var internal apiextensions.CustomResourceDefinition
		must(scheme.Convert(definition, &internal, nil))
		found.Errors = texts(crdvalidation.ValidateCustomResourceDefinition(context.Background(), &internal))
		must(encoder.Encode(found))
	}
}

var spoilers = []func(m *maker, schema object){
	func(m *maker, s object) {
		s["type"] = pick(m, "null", "text", "", "object", "array", "integer", "string")
	},
	func(m *maker, s object) { delete(s, "type") },
	func(m *maker, s object) { delete(s, "items") },
	func(m *maker, s object) { s["items"] = m.of(pick(m, "object", "set", "string", "any"), 3) },
	func(m *maker, s object) { s["additionalProperties"] = pick[any](m, true, false, m.of("string", 4)) },
	func(m *maker, s object) { s["properties"] = m.properties(3) },
	func(m *maker, s object) { delete(s, "properties") },
	func(m *maker, s object) { s["nullable"] = true },
	func(m *maker, s object) { s["uniqueItems"] = true },
	func(m *maker, s object) { s["x-kubernetes-preserve-unknown-fields"] = m.chance(70) },
	func(m *maker, s object) { s["x-kubernetes-embedded-resource"] = true },
	func(m *maker, s object) { s["x-kubernetes-int-or-string"] = true },
	func(m *maker, s object) { s["x-kubernetes-list-type"] = pick(m, "set", "map", "atomic", "bag") },
	func(m *maker, s object) { s["x-kubernetes-list-map-keys"] = []any{pick(m, "name", "a", "no"), "name"} },
	func(m *maker, s object) { s["x-kubernetes-map-type"] = pick(m, "atomic", "granular", "odd") },
	func(m *maker, s object) { s["pattern"] = pick(m, "(", "[a", "a**", `\y`, "(?=a)", "^ok$") },
	func(m *maker, s object) { s["default"] = m.anything(2) },
	func(m *maker, s object) { m.careful = true; s["default"] = m.object(s, 0); m.careful = false },
	func(m *maker, s object) { s["default"] = object{"odd": 1, "a": m.scalar()} },
	func(m *maker, s object) { s["$ref"] = "#/x" },
	func(m *maker, s object) { s["id"] = "x" },
	func(m *maker, s object) { s["definitions"] = object{"a": object{"type": "string"}} },
	func(m *maker, s object) { s["patternProperties"] = object{"a": object{"type": "string"}} },
	func(m *maker, s object) { s["required"] = []any{"a"} },
	func(m *maker, s object) { s["enum"] = []any{"a", 1} },
	func(m *maker, s object) { s["format"] = "frob" },
	func(m *maker, s object) {
		junctor := []any{pick[any](m, object{"type": "integer"}, object{"properties": object{"zz": object{}}}, object{"items": object{"maximum": 1}},
			object{"nullable": true}, object{"default": 1}, object{"description": "x"}, object{"additionalProperties": true},
			object{"x-kubernetes-list-type": "set"}, object{"properties": object{"metadata": object{}}}, object{"not": object{"title": "x"}},
			object{"x-kubernetes-int-or-string": true}, object{"pattern": "("}, object{"x-kubernetes-preserve-unknown-fields": true})}
		s[pick(m, "anyOf", "allOf", "oneOf")] = junctor
	},
	func(m *maker, s object) {
		s["not"] = object{"required": []any{"a"}, "properties": object{"q": object{"minimum": 1}}}
	},
	func(m *maker, s object) { s["anyOf"] = []any{object{"type": "integer"}, object{"type": "string"}} },
	func(m *maker, s object) {
		s["allOf"] = []any{object{"anyOf": []any{object{"type": "integer"}, object{"type": "string"}}}}
	},
	func(m *maker, s object) {
		s["properties"] = object{"metadata": object{"type": pick(m, "object", "string"), "properties": object{
			pick(m, "name", "generateName", "labels"): object{"type": "string", "default": pick[any](m, "x", "Not A Name", 1)}}},
			"kind": object{"type": pick(m, "string", "integer"), "default": pick(m, "X", "not a kind!")}}
	},
}

// Does something to a schema, or to one below it.
func (m *maker) spoil(schema object, depth int) {
	var below []object
	if properties, ok := schema["properties"].(object); ok {
		for _, name := range sorted(properties) {
			if property, ok := properties[name].(object); ok {
				below = append(below, property)
			}
		}
	}
	for _, name := range []string{"items", "additionalProperties", "not"} {
		if one, ok := schema[name].(object); ok {
			below = append(below, one)
		}
	}
	if len(below) > 0 && m.chance(75) && depth < 5 {
		m.spoil(pick(m, below...), depth+1)
		return
	}
	spoilers[m.Intn(len(spoilers))](m, schema)
}
