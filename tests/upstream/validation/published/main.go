// Says what upstream's builder publishes of generated CustomResourceDefinitions: a line of JSON for each version, for
// src/http/openapi/schemas/custom/tests.rs.
//
//	cd tests/upstream/validation && go run ./published | gzip -9n >../../../testdata/published/upstream.jsonl.gz
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type answer struct {
	Spec    interface{}     `json:"spec"`
	Version string          `json:"version"`
	V2      json.RawMessage `json:"v2"`
	V3      json.RawMessage `json:"v3"`
}

// What of a document depends on the definition.
type part struct {
	Paths  interface{} `json:"paths"`
	Object interface{} `json:"object"`
	List   interface{} `json:"list"`
}

func main() {
	log.SetFlags(0)
	source := rand.New(rand.NewSource(15))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for n := 0; n < 250; n++ {
		crd := randomDefinition(source, n)
		for _, version := range crd.Spec.Versions {
			must(out.Encode(answer{Spec: crd.Spec, Version: version.Name, V2: v2(crd, version.Name, n < 6), V3: v3(crd, version.Name, n < 6)}))
		}
	}
}

func v2(crd *v1.CustomResourceDefinition, version string, withPaths bool) json.RawMessage {
	swagger, err := builder.BuildOpenAPIV2(crd, version, builder.Options{V2: true, IncludeSelectableFields: true})
	must(err)
	text, err := json.Marshal(swagger)
	must(err)
	var whole struct{ Paths, Definitions, Parameters map[string]interface{} }
	must(json.Unmarshal(text, &whole))
	name := "io.ex." + version + "."
	found := part{Object: pruned(whole.Definitions[name+"Widget"]), List: pruned(whole.Definitions[name+"WidgetList"])}
	if withPaths {
		found.Paths = resolved(whole.Paths, whole.Parameters)
	}
	return marshal(found)
}

// Without defaults, as upstream publishes it.
func pruned(value interface{}) interface{} {
	schema, ok := value.(map[string]interface{})
	if !ok {
		return value
	}
	delete(schema, "default")
	for _, member := range []string{"items", "additionalProperties"} {
		if below, ok := schema[member]; ok {
			schema[member] = pruned(below)
		}
	}
	if properties, ok := schema["properties"].(map[string]interface{}); ok {
		for name, below := range properties {
			properties[name] = pruned(below)
		}
	}
	return schema
}

// Parameters that are referred to stand where they are used.
func resolved(value interface{}, parameters map[string]interface{}) interface{} {
	switch value := value.(type) {
	case map[string]interface{}:
		if name, ok := value["$ref"].(string); ok && len(name) > 13 && name[:13] == "#/parameters/" {
			return resolved(parameters[name[13:]], parameters)
		}
		for key, member := range value {
			value[key] = resolved(member, parameters)
		}
	case []interface{}:
		for index, item := range value {
			value[index] = resolved(item, parameters)
		}
	}
	return value
}

func v3(crd *v1.CustomResourceDefinition, version string, withPaths bool) json.RawMessage {
	document, err := builder.BuildOpenAPIV3(crd, version, builder.Options{IncludeSelectableFields: true})
	must(err)
	text, err := json.Marshal(document)
	must(err)
	var whole struct {
		Paths      interface{}
		Components struct{ Schemas map[string]interface{} }
	}
	must(json.Unmarshal(text, &whole))
	name := "io.ex." + version + "."
	found := part{Object: whole.Components.Schemas[name+"Widget"], List: whole.Components.Schemas[name+"WidgetList"]}
	if withPaths {
		found.Paths = whole.Paths
	}
	return marshal(found)
}

func randomDefinition(source *rand.Rand, n int) *v1.CustomResourceDefinition {
	scope := v1.NamespaceScoped
	if n%3 == 1 {
		scope = v1.ClusterScoped
	}
	crd := &v1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.ex.io"}}
	crd.Spec = v1.CustomResourceDefinitionSpec{
		Group: "ex.io", Scope: scope,
		Names: v1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
	}
	root := randomSchema(source, 4)
	root.Type, root.Nullable, root.AdditionalProperties, root.Items, root.XIntOrString, root.XEmbeddedResource = "object", false, nil, nil, false, false
	version := v1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: &root},
	}
	if n%2 == 0 {
		version.Subresources = &v1.CustomResourceSubresources{Status: &v1.CustomResourceSubresourceStatus{}}
	}
	if n%4 == 0 {
		version.Subresources.Scale = &v1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}
	}
	if n%5 == 0 {
		version.SelectableFields = []v1.SelectableField{{JSONPath: ".spec.color"}, {JSONPath: ".spec.size"}}
	}
	crd.Spec.Versions = []v1.CustomResourceDefinitionVersion{version}
	return crd
}

var names = []string{"a", "b", "spec", "status", "metadata", "kind", "apiVersion", "c-d", "description"}

func randomSchema(source *rand.Rand, depth int) v1.JSONSchemaProps {
	schema := v1.JSONSchemaProps{}
	kinds := []string{"string", "integer", "number", "boolean", "object", "object", "object", "array", "array", "either", "preserved", "embedded"}
	kind := kinds[source.Intn(len(kinds))]
	if depth <= 0 {
		kind = kinds[source.Intn(4)]
	}
	switch kind {
	case "either":
		schema.XIntOrString = true
		either := []v1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
		switch source.Intn(4) {
		case 0:
			schema.AnyOf = either
		case 1:
			schema.AllOf = []v1.JSONSchemaProps{{AnyOf: either}, {Pattern: "^a"}}
		case 2:
			schema.AnyOf = []v1.JSONSchemaProps{{Pattern: "^a"}}
		}
	case "preserved":
		yes := true
		schema.XPreserveUnknownFields = &yes
		if source.Intn(2) == 0 {
			schema.Type = "object"
			schema.Properties = randomProperties(source, depth-1)
		}
	case "embedded":
		schema.Type, schema.XEmbeddedResource = "object", true
		yes := true
		if source.Intn(2) == 0 {
			schema.XPreserveUnknownFields = &yes
		}
		schema.Properties = randomProperties(source, depth-1)
		for _, name := range []string{"metadata", "kind", "apiVersion"} {
			delete(schema.Properties, name)
		}
		schema.Properties["own"] = v1.JSONSchemaProps{Type: "string"}
	case "object":
		schema.Type = "object"
		if source.Intn(4) == 0 {
			additional := randomSchema(source, depth-1)
			schema.AdditionalProperties = &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &additional}
		} else if source.Intn(8) == 0 {
			schema.AdditionalProperties = &v1.JSONSchemaPropsOrBool{Allows: true}
		} else {
			schema.Properties = randomProperties(source, depth-1)
			for name := range schema.Properties {
				if source.Intn(2) == 0 {
					schema.Required = append(schema.Required, name)
				}
			}
			if source.Intn(6) == 0 {
				atomic := "atomic"
				schema.XMapType = &atomic
			}
			if source.Intn(6) == 0 {
				schema.XValidations = v1.ValidationRules{{Rule: "true", Message: "always"}}
			}
			if source.Intn(6) == 0 && schema.Properties["a"].Type != "" {
				schema.OneOf = []v1.JSONSchemaProps{{Required: []string{"a"}}, {Properties: map[string]v1.JSONSchemaProps{"a": {MaxLength: pointer(3)}}}}
			}
		}
	case "array":
		schema.Type = "array"
		items := randomSchema(source, depth-1)
		schema.Items = &v1.JSONSchemaPropsOrArray{Schema: &items}
		if source.Intn(4) == 0 {
			atomic := "atomic"
			schema.XListType = &atomic
		}
		if source.Intn(4) == 0 {
			schema.MaxItems = pointer(int64(source.Intn(3)))
		}
	default:
		schema.Type = kind
		if kind == "string" && source.Intn(2) == 0 {
			schema.Enum = []v1.JSON{{Raw: []byte(`"x"`)}, {Raw: []byte(`"y"`)}}
			schema.Default = &v1.JSON{Raw: []byte(`"x"`)}
		}
		if kind == "integer" && source.Intn(2) == 0 {
			least := float64(source.Intn(5))
			schema.Minimum, schema.Format, schema.ExclusiveMinimum = &least, "int32", source.Intn(2) == 0
		}
	}
	if source.Intn(3) == 0 {
		schema.Description = fmt.Sprintf("says %d", source.Intn(100))
	}
	if source.Intn(9) == 0 {
		schema.Title, schema.Example = "A title", &v1.JSON{Raw: []byte(`{"e":1}`)}
		schema.ExternalDocs = &v1.ExternalDocumentation{URL: "https://ex.io"}
	}
	schema.Nullable = source.Intn(7) == 0
	return schema
}

func randomProperties(source *rand.Rand, depth int) map[string]v1.JSONSchemaProps {
	properties := map[string]v1.JSONSchemaProps{}
	for n := 1 + source.Intn(4); n > 0; n-- {
		name := names[source.Intn(len(names))]
		switch name {
		case "kind", "apiVersion":
			properties[name] = v1.JSONSchemaProps{Type: "string"}
		case "metadata":
			properties[name] = v1.JSONSchemaProps{Type: "object"}
		default:
			properties[name] = randomSchema(source, depth)
		}
	}
	return properties
}

func pointer(value int64) *int64 { return &value }

func marshal(value interface{}) json.RawMessage {
	text, err := json.Marshal(value)
	must(err)
	return text
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
