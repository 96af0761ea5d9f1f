package main

import (
	"maps"
	"math/rand"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"rowplane/proto/generate/kinds"
)

// objects are hand-made ones, every kind with nothing set, and every kind but lists filled at random.
func objects(scheme *runtime.Scheme) ([]runtime.Object, error) {
	all := handMade()
	filler := newFiller(scheme)
	for _, served := range kinds.Served {
		types := scheme.KnownTypes(served)
		for _, name := range slices.Sorted(maps.Keys(types)) {
			// The kinds of meta/v1 are registered in every version; events of watches have no envelope.
			shared := strings.HasSuffix(types[name].PkgPath(), "/meta/v1")
			if shared && served.String() != "v1" || name == "WatchEvent" {
				continue
			}
			kind := served.WithKind(name)
			empty, err := scheme.New(kind)
			if err != nil {
				return nil, err
			}
			all = append(all, empty)
			// The schemas of a definition have no end.
			if strings.HasSuffix(name, "List") || name == "CustomResourceDefinition" {
				continue
			}
			filled, err := scheme.New(kind)
			if err != nil {
				return nil, err
			}
			filler.Fill(filled)
			all = append(all, filled)
		}
	}
	return all, nil
}

func newFiller(scheme *runtime.Scheme) *randfill.Filler {
	functions := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, func(serializer.CodecFactory) []any {
		return []any{
			func(quantity *resource.Quantity, _ randfill.Continue) { *quantity = resource.MustParse("1500m") },
			func(port *intstr.IntOrString, fill randfill.Continue) {
				*port = intstr.FromInt32(fill.Int31())
				if fill.Bool() {
					*port = intstr.FromString(fill.String(0))
				}
			},
			func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = []byte(`{"a":[1,"<&>"]}`) },
		}
	})
	return fuzzer.FuzzerFor(functions, rand.NewSource(37), serializer.NewCodecFactory(scheme)).NumElements(1, 2).MaxDepth(14)
}

func handMade() []runtime.Object {
	yes := true
	schema := apiextensions.JSONSchemaProps{
		Type:                 "object",
		Properties:           map[string]apiextensions.JSONSchemaProps{"b": {Type: "string"}, "a": {XIntOrString: true}},
		AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true},
		AdditionalItems:      &apiextensions.JSONSchemaPropsOrBool{},
		Items:                &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{Type: "integer"}},
		Default:              &apiextensions.JSON{Raw: []byte(`{"z":1,"a":[true,null]}`)},
		Enum:                 []apiextensions.JSON{{Raw: []byte(`"x"`)}, {}},
		Not: &apiextensions.JSONSchemaProps{
			Items: &apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{{Type: "a"}}},
		},
		Dependencies: apiextensions.JSONSchemaDependencies{
			"s": {Property: []string{"p"}}, "t": {Schema: &apiextensions.JSONSchemaProps{ID: "i"}}, "u": {},
		},
		XPreserveUnknownFields: &yes,
	}
	definition := &apiextensions.CustomResourceDefinition{ObjectMeta: meta.ObjectMeta{Name: "as.b.c"}}
	definition.Spec.Versions = []apiextensions.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &schema},
	}}
	list := &core.List{Items: []runtime.RawExtension{{Raw: []byte(`{"kind":"X"}`)}, {}}}
	secret := &core.Secret{Data: map[string][]byte{"z": {0, 1, 255}, "empty": {}, "a": []byte("text")}}
	secret.Labels = map[string]string{"b": "", "a": "é<"}
	return []runtime.Object{definition, list, secret}
}
