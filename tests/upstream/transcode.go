package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"rowplane/proto/generate/kinds"
	"rowplane/tests/upstream/peer"
)

// transcode fills every kind at random and compares both directions between protobuf and JSON.
func transcode(c *comparison) error {
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	meta.AddToGroupVersion(scheme, core.SchemeGroupVersion)
	c.scheme = scheme
	codec := protobuf.NewSerializer(scheme, scheme)
	filler := newFiller(scheme, c.seed)
	for _, version := range kinds.Served {
		types := scheme.KnownTypes(version)
		for _, name := range slices.Sorted(maps.Keys(types)) {
			shared := strings.HasSuffix(types[name].PkgPath(), "/meta/v1")
			if shared || strings.HasSuffix(name, "List") && name != "List" {
				continue
			}
			for range c.count {
				object, err := scheme.New(version.WithKind(name))
				if err != nil {
					return err
				}
				filler.Fill(object)
				if err := c.transcoded(codec, version.WithKind(name), object); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return nil
}

func (c *comparison) transcoded(codec *protobuf.Serializer, kind schema.GroupVersionKind, object runtime.Object) error {
	object.GetObjectKind().SetGroupVersionKind(kind)
	envelope, err := encoded(codec, object)
	if err != nil {
		return err
	}
	decoded, err := decoded(codec, kind, envelope)
	if err != nil {
		return err
	}
	answer, err := c.peer.Ask(peer.Object{"ask": "decode", "envelope": envelope})
	if err != nil {
		return err
	}
	c.compared++
	printed, err := asMap(decoded)
	if err != nil {
		return err
	}
	if answer.Refused != "" || !reflect.DeepEqual(printed, answer.Object) {
		c.differ(kind.Kind+" protobuf to JSON", envelope, printed, orRefused(answer.Object, answer))
	}
	return c.fromJSON(codec, kind, printed)
}

// fromJSON compares what the two write of the same JSON: as bytes, and as what upstream reads in them.
func (c *comparison) fromJSON(codec *protobuf.Serializer, kind schema.GroupVersionKind, printed peer.Object) error {
	text, err := peer.Encode(printed)
	if err != nil {
		return err
	}
	object, err := c.scheme.New(kind)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, object); err != nil {
		return err
	}
	envelope, err := encoded(codec, object)
	if err != nil {
		return err
	}
	answer, err := c.peer.Ask(peer.Object{"ask": "encode", "object": printed})
	if err != nil {
		return err
	}
	c.compared++
	if answer.Refused != "" {
		c.differ(kind.Kind+" JSON to protobuf", printed, envelope, answer.Refused)
		return nil
	}
	read, err := decoded(codec, kind, answer.Envelope)
	if err != nil {
		c.differ(kind.Kind+" JSON to protobuf", printed, envelope, err.Error())
		return nil
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !equality.Semantic.DeepEqual(object, read) || !bytes.Equal(envelope, answer.Envelope) {
		c.differ(kind.Kind+" JSON to protobuf", printed, envelope, answer.Envelope)
	}
	return nil
}

func orRefused(value any, answer *peer.Answer) any {
	if answer.Refused != "" {
		return answer.Refused
	}
	return value
}

func encoded(codec *protobuf.Serializer, object runtime.Object) ([]byte, error) {
	var buffer bytes.Buffer
	err := codec.Encode(object, &buffer)
	return buffer.Bytes(), err
}

func decoded(codec *protobuf.Serializer, kind schema.GroupVersionKind, envelope []byte) (runtime.Object, error) {
	object, _, err := codec.Decode(envelope, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object, nil
}

func asMap(object any) (peer.Object, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	printed := peer.Object{}
	return printed, peer.Decode(text, &printed)
}

// newFiller is upstream's fuzzer for what API types have in common, with what it leaves to each group.
func newFiller(scheme *runtime.Scheme, seed int64) *randfill.Filler {
	functions := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, func(serializer.CodecFactory) []any {
		return []any{
			func(quantity *resource.Quantity, fill randfill.Continue) {
				texts := []string{"1500m", "0", "1Gi", "-3", "1e3", "12345678901234567890", "0.001"}
				*quantity = resource.MustParse(texts[fill.Intn(len(texts))])
			},
			func(port *intstr.IntOrString, fill randfill.Continue) {
				*port = intstr.FromInt32(fill.Int31())
				if fill.Bool() {
					*port = intstr.FromString(fill.String(0))
				}
			},
			func(raw *runtime.RawExtension, fill randfill.Continue) {
				texts := []string{`{"a":[1,"<&>"]}`, `{"kind":"X","apiVersion":"y/v1","z":null}`, `{}`}
				raw.Raw = []byte(texts[fill.Intn(len(texts))])
			},
			func(json *apiextensions.JSON, fill randfill.Continue) {
				texts := []string{`"x"`, `1`, `{"z":[true,null]}`, `-1.5`, `[]`}
				json.Raw = []byte(texts[fill.Intn(len(texts))])
			},
			fillProps,
		}
	})
	made := fuzzer.FuzzerFor(functions, rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	return made.NilChance(0.3).NumElements(0, 3).MaxDepth(14)
}

// fillProps goes two levels deep; schemas of definitions have no end of their own.
func fillProps(props *apiextensions.JSONSchemaProps, fill randfill.Continue) {
	*props = scalarProps(fill)
	nested := func() *apiextensions.JSONSchemaProps { inner := scalarProps(fill); return &inner }
	switch fill.Intn(6) {
	case 0:
		props.Items = &apiextensions.JSONSchemaPropsOrArray{Schema: nested()}
	case 1:
		props.Items = &apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{*nested(), *nested()}}
	case 2:
		props.AdditionalProperties = &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: nested()}
	case 3:
		props.AdditionalItems = &apiextensions.JSONSchemaPropsOrBool{Allows: fill.Bool()}
	case 4:
		props.Dependencies = apiextensions.JSONSchemaDependencies{
			fill.String(0): {Property: []string{fill.String(0)}}, "x": {Schema: nested()},
		}
	case 5:
		props.AllOf = []apiextensions.JSONSchemaProps{*nested()}
		props.Properties = map[string]apiextensions.JSONSchemaProps{fill.String(0): *nested(), "y": *nested()}
	}
}

func scalarProps(fill randfill.Continue) apiextensions.JSONSchemaProps {
	props := apiextensions.JSONSchemaProps{}
	fill.Fill(&props.Type)
	fill.Fill(&props.Description)
	fill.Fill(&props.Maximum)
	fill.Fill(&props.MultipleOf)
	fill.Fill(&props.MinLength)
	fill.Fill(&props.Enum)
	fill.Fill(&props.Default)
	fill.Fill(&props.Required)
	fill.Fill(&props.Nullable)
	fill.Fill(&props.XPreserveUnknownFields)
	fill.Fill(&props.XListMapKeys)
	fill.Fill(&props.XValidations)
	return props
}
