package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"rowplane/proto/generate/definitions"
)

const extensionPrefix = "x-kubernetes-"

var schemas = definitions.GetOpenAPIDefinitions(func(name string) spec.Ref {
	return spec.MustCreateRef("#/" + common.EscapeJsonPointer(name))
})

// schemaOf finds the schema of a type: k8s.io/api/apps/v1 Deployment is io.k8s.api.apps.v1.Deployment.
func schemaOf(t reflect.Type) (spec.Schema, error) {
	path := strings.Replace(t.PkgPath(), "k8s.io/", "io/k8s/", 1)
	name := strings.ReplaceAll(path, "/", ".") + "." + t.Name()
	definition, found := schemas[name]
	if !found {
		return spec.Schema{}, fmt.Errorf("no definition %s; run go generate ./definitions", name)
	}
	return definition.Schema, nil
}

// messageMarkers says what holds for a struct as a whole.
func messageMarkers(t reflect.Type) (options []string, err error) {
	schema, err := schemaOf(t)
	if err != nil {
		return nil, err
	}
	for _, name := range extensionsOf(schema) {
		switch value := schema.Extensions[extensionPrefix+name].(type) {
		case string:
			if name != "map-type" {
				return nil, fmt.Errorf("%s: unknown extension %s", t, name)
			}
			options = append(options, fmt.Sprintf("(rowplane.struct_type) = %q", value))
		case []any:
			for _, union := range value {
				options = append(options, "(rowplane.union) = "+unionMarker(union.(map[string]any)))
			}
		default:
			return nil, fmt.Errorf("%s: extension %s is a %T", t, name, value)
		}
	}
	return options, nil
}

func unionMarker(union map[string]any) string {
	var parts []string
	if discriminator, ok := union["discriminator"]; ok {
		parts = append(parts, fmt.Sprintf("discriminator: %q", discriminator))
	}
	members := union["fields-to-discriminateBy"].(map[string]any)
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("members { field: %q value: %q }", name, members[name]))
	}
	return "{ " + strings.Join(parts, " ") + " }"
}

// fieldMarkers says what clients and merges must know of a field.
func fieldMarkers(into *field, owner reflect.Type, from reflect.StructField, name string) error {
	parent, err := schemaOf(owner)
	if err != nil {
		return err
	}
	schema, found := parent.Properties[name]
	if !found {
		return fmt.Errorf("no property %s of %s", name, owner)
	}
	if slices.Contains(parent.Required, name) {
		into.options = append(into.options, "(rowplane.required) = true")
	}
	if err := defaultMarker(into, schema.Default, from); err != nil {
		return err
	}
	for _, name := range extensionsOf(schema) {
		option := "(rowplane." + strings.ReplaceAll(name, "-", "_") + ")"
		switch value := schema.Extensions[extensionPrefix+name].(type) {
		case string:
			into.options = append(into.options, fmt.Sprintf("%s = %q", option, value))
		case []any:
			for _, each := range value {
				into.options = append(into.options, fmt.Sprintf("%s = %q", option, each))
			}
		default:
			return fmt.Errorf("extension %s is a %T", name, value)
		}
	}
	for _, value := range allowed(schema) {
		into.options = append(into.options, fmt.Sprintf("(rowplane.allowed) = %q", value))
	}
	return nil
}

// allowed are the values of an enum, of the field itself or of its elements.
func allowed(schema spec.Schema) []any {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return schema.Items.Schema.Enum
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return schema.AdditionalProperties.Schema.Enum
	default:
		return schema.Enum
	}
}

// defaultMarker leaves out zeros: that they are the default of what is always there goes without saying.
func defaultMarker(into *field, value any, from reflect.StructField) error {
	printed := from.Type.Kind() == reflect.Struct || slices.Contains(into.options, "(rowplane.always) = true")
	if value == nil || printed && from.Type.Kind() != reflect.Pointer && isZero(value) {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	into.options = append(into.options, fmt.Sprintf("(rowplane.default) = %q", text))
	return nil
}

func isZero(value any) bool {
	v := reflect.ValueOf(value)
	return v.IsZero() || v.Kind() == reflect.Map && v.Len() == 0
}

func extensionsOf(schema spec.Schema) []string {
	names := make([]string, 0, len(schema.Extensions))
	for name := range schema.Extensions {
		names = append(names, strings.TrimPrefix(name, extensionPrefix))
	}
	sort.Strings(names)
	return names
}
