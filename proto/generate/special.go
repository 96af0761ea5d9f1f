package main

import (
	"encoding/json"
	"reflect"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// special is a type whose JSON is not what its fields say; fields are those of the struct if none are given.
type special struct {
	format string
	fields []field
}

var timestamp = []field{{name: "seconds", number: 1, typ: "int64"}, {name: "nanos", number: 2, typ: "int32"}}

var specials = map[reflect.Type]special{
	reflect.TypeOf(meta.Time{}):      {"FORMAT_TIME", timestamp},
	reflect.TypeOf(meta.MicroTime{}): {"FORMAT_MICRO_TIME", timestamp},
	reflect.TypeOf(meta.FieldsV1{}):  {"FORMAT_RAW", []field{{name: "Raw", number: 1, typ: "bytes"}}},
	reflect.TypeOf(resource.Quantity{}): {
		"FORMAT_QUANTITY", []field{{name: "string", number: 1, typ: "string"}},
	},
	reflect.TypeOf(intstr.IntOrString{}):                         {"FORMAT_INT_OR_STRING", nil},
	reflect.TypeOf(runtime.RawExtension{}):                       {"FORMAT_RAW", nil},
	reflect.TypeOf(apiextensions.JSON{}):                         {"FORMAT_RAW", nil},
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrBool{}):        {"FORMAT_SCHEMA_OR_BOOL", nil},
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrArray{}):       {"FORMAT_SCHEMA_OR_ARRAY", nil},
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrStringArray{}): {"FORMAT_SCHEMA_OR_STRINGS", nil},
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func printsItself(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
