package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

// A document of rules.yaml: a schema with rules, and objects with what they were before.
type document struct {
	Schema v1.JSONSchemaProps `json:"schema"`
	Cases  []struct {
		New any `json:"new"`
		Old any `json:"old"`
	} `json:"cases"`
}

type findings struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Budget   int64    `json:"budget"`
}

type recorder struct{ warnings []string }

func (r *recorder) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

// rules writes what upstream's rules say of the objects, a list for each document.
func rules(folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "rules.yaml"))
	check(err)
	var all [][]findings
	for _, part := range strings.Split(string(text), "\n---\n") {
		var d document
		check(yaml.UnmarshalStrict([]byte(part), &d))
		var internal apiextensions.JSONSchemaProps
		check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&d.Schema, &internal, nil))
		schema, err := structural.NewStructural(&internal)
		check(err)
		validator := schemacel.NewValidator(schema, true, celconfig.PerCallLimit)
		found := []findings{}
		for _, c := range d.Cases {
			found = append(found, validate(validator, schema, whole(c.New), whole(c.Old)))
		}
		all = append(all, found)
	}
	out, err := json.MarshalIndent(all, "", " ")
	check(err)
	check(os.WriteFile(filepath.Join(folder, "results.json"), append(out, '\n'), 0o644))
}

func validate(validator *schemacel.Validator, schema *structural.Structural, now, before any) findings {
	told := &recorder{}
	ctx := warning.WithWarningRecorder(context.Background(), told)
	var options []schemacel.Option
	if before != nil {
		options = append(options, schemacel.WithRatcheting(common.NewCorrelatedObject(now, before, &model.Structural{Structural: schema})))
	}
	errs, budget := validator.Validate(ctx, nil, schema, now, before, celconfig.RuntimeCELCostBudget, options...)
	f := findings{Errors: []string{}, Warnings: append([]string{}, told.warnings...), Budget: budget}
	for _, err := range errs {
		f.Errors = append(f.Errors, err.Error())
	}
	sort.Strings(f.Errors)
	sort.Strings(f.Warnings)
	return f
}
