package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// A line of testdata/structural/random.jsonl.gz: a schema and what becomes of objects with it.
type random struct {
	Schema json.RawMessage `json:"schema"`
	Cases  []verdicts      `json:"cases"`
}

type verdicts struct {
	Sent json.RawMessage `json:"sent"`
	// Why metadata is refused; nothing else is told then.
	Refused string   `json:"refused,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	// Without unknown members and nulls, and then with defaults.
	Conformed json.RawMessage `json:"conformed,omitempty"`
	Defaulted json.RawMessage `json:"defaulted,omitempty"`
	Fields    json.RawMessage `json:"fields,omitempty"`
	// Of a new object with defaults, sorted; and of one that was the object before, its status alone last.
	Errors []string `json:"errors,omitempty"`
	Update []string `json:"update,omitempty"`
	Status []string `json:"status,omitempty"`
	Lists  []string `json:"lists,omitempty"`
}

func generate(seed int64, schemas, objects int) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for index := 0; index < schemas; index++ {
		maker := &maker{Rand: rand.New(rand.NewSource(seed + int64(index)))}
		schema := maker.root()
		must(encoder.Encode(judge(maker, schema, objects)))
	}
}

type object = map[string]interface{}

func judge(maker *maker, schema object, objects int) random {
	text, err := json.Marshal(schema)
	must(err)
	var props v1.JSONSchemaProps
	must(json.Unmarshal(text, &props))
	var internal apiextensions.JSONSchemaProps
	must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	shape, err := structural.NewStructural(&internal)
	must(err)
	if errs := structural.ValidateStructural(nil, shape); len(errs) > 0 {
		panic(fmt.Sprint(string(text), errs))
	}
	merged := converter(shape)
	must(defaulting.PruneDefaults(shape))
	validator, _, err := validation.NewSchemaValidator(&internal)
	must(err)
	status := internal.Properties["status"]
	ofStatus, _, err := validation.NewSchemaValidator(&status)
	must(err)
	found := random{Schema: text}
	var before object
	for n := 0; n < objects; n++ {
		var sent object
		if before != nil && maker.Intn(2) == 0 {
			sent = maker.change(before, schema).(object)
		} else {
			sent = maker.struct_(schema, schema["properties"].(object), 0).(object)
			maker.meta(sent)
		}
		verdict, after := verdict(shape, merged, validator, ofStatus, sent, before)
		found.Cases = append(found.Cases, verdict)
		if after != nil {
			before = after
		}
	}
	return found
}

func verdict(shape *structural.Structural, merged typed.ParseableType, validator, ofStatus validation.SchemaValidator, made, before object) (verdicts, object) {
	text, err := json.Marshal(made)
	must(err)
	found := verdicts{Sent: text}
	var sent object
	must(utiljson.Unmarshal(text, &sent))
	// As unstructuredSchemaCoercer does it.
	meta, _, err := objectmeta.GetObjectMeta(sent, false)
	if err != nil {
		found.Refused = err.Error()
		return found, nil
	}
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	found.Unknown = pruning.PruneWithOptions(sent, shape, true, options)
	defaulting.PruneNonNullableNullsWithoutDefaults(sent, shape)
	coercion := objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true}
	wrong, paths := objectmeta.CoerceWithOptions(nil, sent, shape, false, coercion)
	if wrong != nil {
		found.Refused = wrong.Error()
		return found, nil
	}
	found.Unknown = append(found.Unknown, paths...)
	if meta != nil {
		must(objectmeta.SetObjectMeta(sent, meta))
		delete(sent["metadata"].(object), "creationTimestamp")
	}
	found.Conformed = raw(sent)
	defaulting.Default(sent, shape)
	if text := raw(sent); string(text) != string(found.Conformed) {
		found.Defaulted = text
	}
	found.Fields = fields(merged, sent)
	found.Errors = texts(validation.ValidateCustomResource(nil, sent, validator))
	found.Lists = texts(listtype.ValidateListSetsAndMaps(nil, shape, sent))
	found.Lists = append(found.Lists, embedded(shape, sent)...)
	if before != nil {
		correlated := common.NewCorrelatedObject(sent, before, &model.Structural{Structural: shape})
		ratcheted := validation.WithRatcheting(correlated)
		found.Update = texts(validation.ValidateCustomResourceUpdate(nil, sent, before, validator, ratcheted))
		if value, ok := sent["status"]; ok {
			ratcheted := validation.WithRatcheting(correlated.Key("status"))
			path := field.NewPath("status")
			found.Status = texts(validation.ValidateCustomResourceUpdate(path, value, before["status"], ofStatus, ratcheted))
		}
	}
	return found, sent
}

// Where embedded resources stand that lack a kind: enough to know that they were looked at.
func embedded(shape *structural.Structural, sent object) []string {
	var found []string
	for _, err := range objectmeta.Validate(context.Background(), nil, sent, shape, false) {
		if err.Type == field.ErrorTypeRequired && strings.HasSuffix(err.Field, ".kind") {
			found = append(found, err.Field)
		}
	}
	sort.Strings(found)
	return found
}

func raw(value object) json.RawMessage {
	text, err := json.Marshal(value)
	must(err)
	return text
}

// Upstream visits members in random order.
func texts(errs field.ErrorList) []string {
	var found []string
	for _, err := range errs {
		found = append(found, fmt.Sprintf("%s|%s", string(err.Type), err.Error()))
	}
	sort.Strings(found)
	return found
}
