// Says what upstream makes of objects with structural schemas: a line of JSON for each object of
// testdata/structural/cases.json, for crates/objects/src/schema/structural/tests.rs and crates/objects/src/patch/apply/schema/structural.rs.
//
//	cd tests/upstream && go run ./structural <../../testdata/structural/cases.json >../../testdata/structural/upstream.jsonl
//
// Of schemas and objects that it makes itself, of schemas that something is wrong with, of schemas with rules, of regular expressions, and of
// texts and formats:
//
//	go run ./structural random 1 500 6 | gzip -9n >../../testdata/structural/random.jsonl.gz
//	go run ./structural rules | gzip -9n >../../testdata/structural/rules.jsonl.gz
//	go run ./structural expressions | gzip -9n >../../testdata/structural/expressions.jsonl.gz
//	go run ./structural patterns | gzip -9n >../../testdata/structural/patterns.jsonl.gz
//	go run ./structural formats | gzip -9n >../../testdata/structural/formats.tsv.gz
package main

import (
	"encoding/json"
	"log"
	"os"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

type group struct {
	Name    string                   `json:"name"`
	Schema  json.RawMessage          `json:"schema"`
	Objects []map[string]interface{} `json:"objects"`
}

type answer struct {
	Name    string                 `json:"name"`
	Schema  json.RawMessage        `json:"schema"`
	Sent    map[string]interface{} `json:"sent"`
	Unknown []string               `json:"unknown"`
	Refused string                 `json:"refused,omitempty"`
	// Without unknown members and nulls, and then with defaults.
	Conformed map[string]interface{} `json:"conformed,omitempty"`
	Defaulted map[string]interface{} `json:"defaulted,omitempty"`
	// What apply says the object owns.
	Fields json.RawMessage `json:"fields,omitempty"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 4 && os.Args[1] == "random" {
		number := func(at int) int {
			value, err := strconv.Atoi(os.Args[at])
			must(err)
			return value
		}
		generate(int64(number(2)), number(3), number(4))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "rules" {
		writeRules(1500)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "expressions" {
		count := 1200
		if len(os.Args) > 2 {
			var err error
			count, err = strconv.Atoi(os.Args[2])
			must(err)
		}
		writeExpressions(count)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "patterns" {
		writePatterns()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "formats" {
		writeFormats(strfmt.Default.Validates)
		return
	}
	var groups []group
	must(json.NewDecoder(os.Stdin).Decode(&groups))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, group := range groups {
		schema, types := read(group.Schema), converter(read(group.Schema))
		for _, object := range group.Objects {
			found := ask(schema, types, object)
			found.Name, found.Schema, found.Sent = group.Name, group.Schema, object
			must(out.Encode(found))
		}
	}
}

func read(text json.RawMessage) *structural.Structural {
	var props v1.JSONSchemaProps
	must(json.Unmarshal(text, &props))
	var internal apiextensions.JSONSchemaProps
	must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	schema, err := structural.NewStructural(&internal)
	must(err)
	must(defaulting.PruneDefaults(schema))
	return schema
}

func ask(schema *structural.Structural, types typed.ParseableType, sent map[string]interface{}) answer {
	object := runtime.DeepCopyJSON(normal(sent))
	if err, _ := objectmeta.CoerceWithOptions(nil, object, schema, true, objectmeta.CoerceOptions{}); err != nil {
		return answer{Refused: err.Error()}
	}
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	found := answer{Unknown: pruning.PruneWithOptions(object, schema, true, options)}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, schema)
	found.Conformed = runtime.DeepCopyJSON(object)
	defaulting.Default(object, schema)
	found.Defaulted = object
	found.Fields = fields(types, object)
	return found
}

// The types of apply, with those of metadata that the server adds to embedded resources.
func converter(schema *structural.Structural) typed.ParseableType {
	reference := func(path string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + strings.ReplaceAll(path, "/", "."))
	}
	models := map[string]*spec.Schema{}
	for path, definition := range openapi.GetOpenAPIDefinitions(reference) {
		model := definition.Schema
		models[strings.ReplaceAll(path, "/", ".")] = &model
	}
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{Ref: reference("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta")}}
	for name := range models {
		if strings.HasSuffix(name, "meta.v1.ObjectMeta") {
			metadata.Ref = spec.MustCreateRef("#/definitions/" + name)
		}
	}
	model := schema.ToKubeOpenAPI()
	embed(model, metadata)
	if model.Properties == nil {
		model.Properties = map[string]spec.Schema{}
	}
	model.Properties["apiVersion"] = *spec.StringProperty()
	model.Properties["kind"] = *spec.StringProperty()
	models["object"] = model
	converted, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	must(err)
	parser := &typed.Parser{}
	converted.CopyInto(&parser.Schema)
	return parser.Type("object")
}

func embed(model *spec.Schema, metadata spec.Schema) {
	if model == nil {
		return
	}
	for name, property := range model.Properties {
		embed(&property, metadata)
		model.Properties[name] = property
	}
	if model.Items != nil {
		embed(model.Items.Schema, metadata)
	}
	if model.AdditionalProperties != nil {
		embed(model.AdditionalProperties.Schema, metadata)
	}
	if embedded, _ := model.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
		model.SetProperty("apiVersion", *spec.StringProperty())
		model.SetProperty("kind", *spec.StringProperty())
		model.SetProperty("metadata", metadata)
	}
}

func fields(converter typed.ParseableType, object map[string]interface{}) json.RawMessage {
	plain := runtime.DeepCopyJSON(object)
	delete(plain, "metadata")
	value, err := converter.FromUnstructured(plain)
	if err != nil {
		return nil
	}
	set, err := value.ToFieldSet()
	must(err)
	text, err := set.ToJSON()
	must(err)
	return text
}

// Integers as upstream's decoder has them.
func normal(object map[string]interface{}) map[string]interface{} {
	var walk func(value interface{}) interface{}
	walk = func(value interface{}) interface{} {
		switch value := value.(type) {
		case map[string]interface{}:
			for name, member := range value {
				value[name] = walk(member)
			}
		case []interface{}:
			for index, item := range value {
				value[index] = walk(item)
			}
		case float64:
			if value == float64(int64(value)) {
				return int64(value)
			}
		}
		return value
	}
	return walk(object).(map[string]interface{})
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
