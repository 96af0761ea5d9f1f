package main

import (
	"log"
	"math/rand"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		core.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
		autoscaling.AddToScheme, batch.AddToScheme, coordination.AddToScheme, networking.AddToScheme,
		policy.AddToScheme, rbac.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	meta.AddToGroupVersion(scheme, core.SchemeGroupVersion)
	return scheme
}

// objects are kinds with nothing set, hand-made objects, and kinds filled at random.
func objects() []runtime.Object {
	kinds := []func() runtime.Object{
		func() runtime.Object { return &core.ConfigMap{} },
		func() runtime.Object { return &core.Secret{} },
		func() runtime.Object { return &core.Service{} },
		func() runtime.Object { return &core.Pod{} },
		func() runtime.Object { return &core.Namespace{} },
		func() runtime.Object { return &core.Event{} },
		func() runtime.Object { return &apps.Deployment{} },
		func() runtime.Object { return &batch.Job{} },
		func() runtime.Object { return &batch.CronJob{} },
		func() runtime.Object { return &networking.Ingress{} },
		func() runtime.Object { return &rbac.Role{} },
		func() runtime.Object { return &rbac.RoleBinding{} },
		func() runtime.Object { return &autoscaling.HorizontalPodAutoscaler{} },
		func() runtime.Object { return &policy.PodDisruptionBudget{} },
		func() runtime.Object { return &coordination.Lease{} },
		func() runtime.Object { return &authorization.SelfSubjectAccessReview{} },
		func() runtime.Object { return &authentication.TokenReview{} },
		func() runtime.Object { return &apiregistration.APIService{} },
		func() runtime.Object { return &apiextensions.CustomResourceDefinition{} },
		func() runtime.Object { return &meta.DeleteOptions{} },
	}
	all := handMade()
	filler := newFiller()
	for _, kind := range kinds {
		all = append(all, kind())
		if _, isDefinition := kind().(*apiextensions.CustomResourceDefinition); isDefinition {
			// Schemas without end.
			continue
		}
		filled := kind()
		filler.Fill(filled)
		all = append(all, filled)
	}
	return all
}

func newFiller() *randfill.Filler {
	scheme := newScheme()
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
