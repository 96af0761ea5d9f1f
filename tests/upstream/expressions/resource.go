package main

import (
	"os"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// A resources knows the schema of a custom resource.
type resources struct{ root *structural.Structural }

func readResources(path string) resources {
	text, err := os.ReadFile(path)
	check(err)
	var props v1.JSONSchemaProps
	check(yaml.UnmarshalStrict(text, &props))
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	root, err := structural.NewStructural(&internal)
	check(err)
	return resources{root}
}

// Where the rule stands, `.spec.list[]` or `.` for all of it, and `message` or `optional` after it.
func (r resources) compile(detail, expression string) string {
	words := strings.Fields(detail)
	at, resource := r.root, true
	for _, name := range strings.Split(words[0], ".") {
		list := strings.HasSuffix(name, "[]")
		if name = strings.TrimSuffix(name, "[]"); name != "" {
			property, found := at.Properties[name]
			if !found {
				panic(name)
			}
			at = &property
			resource = at.XEmbeddedResource
		}
		if list && at.Items != nil {
			at = at.Items
			resource = at.XEmbeddedResource
		} else if list {
			at = at.AdditionalProperties.Structural
			resource = at.XEmbeddedResource
		}
	}
	here := *at
	rule := v1.ValidationRule{Rule: expression}
	for _, word := range words[1:] {
		switch word {
		case "message":
			rule = v1.ValidationRule{Rule: "true", MessageExpression: expression}
		case "optional":
			yes := true
			rule.OptionalOldSelf = &yes
		}
	}
	here.XValidations = v1.ValidationRules{rule}
	results, err := cel.Compile(&here, model.SchemaDeclType(&here, resource), celconfig.PerCallLimit, base, cel.NewExpressionsEnvLoader())
	if err != nil {
		return "internal: " + err.Error()
	}
	if results[0].Error != nil {
		return results[0].Error.Detail
	}
	if results[0].MessageExpressionError != nil {
		return results[0].MessageExpressionError.Detail
	}
	return ""
}
