// What upstream's own packages make of admission policies: mutations of objects, validations, and checks of types. Each line
// of the output is a case; objects are at the start, cases name them by number.
//
//	go run ./policies ../../testdata/policies/cases.jsonl.gz $(go env GOMODCACHE)/k8s.io/kubernetes@v1.37.2/api/openapi-spec/v3
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
)

type variable struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type line struct {
	// An object that cases name by its number.
	Object json.RawMessage `json:"object,omitempty"`
	// A mutation: its type, what it comes to, or why it fails.
	Of         int             `json:"of"`
	Patch      string          `json:"patch,omitempty"`
	Expression string          `json:"expression,omitempty"`
	Variables  []variable      `json:"variables,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
	// A validating policy's spec, and its decisions or warnings about types.
	Spec      json.RawMessage     `json:"spec,omitempty"`
	Decisions []decision          `json:"decisions,omitempty"`
	Notes     []note              `json:"notes,omitempty"`
	Warnings  []map[string]string `json:"warnings,omitempty"`
	Checked   bool                `json:"checked,omitempty"`
}

type decision struct {
	Action  string `json:"action"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

type note struct {
	Action string `json:"action"`
	Key    string `json:"key"`
	Value  string `json:"value"`
	Error  string `json:"error"`
}

type lab struct {
	ctx        context.Context
	random     *rand.Rand
	converters patch.TypeConverterManager
	objects    []runtime.Object
	lines      []line
}

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := openapitest.NewFileClient(os.Args[2])
	l := &lab{ctx: ctx, random: rand.New(rand.NewSource(37)), converters: patch.NewTypeConverterManager(nil, client)}
	go l.converters.Run(ctx)
	for l.converters.GetTypeConverter(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	for _, text := range objects {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
		check(err)
		l.objects = append(l.objects, object)
		l.lines = append(l.lines, line{Object: text})
	}
	for n := 0; n < 1600; n++ {
		l.mutate("ApplyConfiguration", l.configuration)
	}
	for n := 0; n < 1000; n++ {
		l.mutate("JSONPatch", l.operations)
	}
	for n := 0; n < 1000; n++ {
		l.validate()
	}
	for n := 0; n < 300; n++ {
		l.checkTypes(client)
	}
	l.write(os.Args[1])
}

func (l *lab) write(path string) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	check(err)
	for _, line := range l.lines {
		out, err := json.Marshal(line)
		check(err)
		_, err = zip.Write(append(out, '\n'))
		check(err)
	}
	check(zip.Close())
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	check(os.WriteFile(path, packed.Bytes(), 0o644))
	fmt.Println(len(l.lines), "lines,", packed.Len(), "bytes")
}

// The attributes of a create of this object, in its own version.
func (l *lab) attributes(object runtime.Object) *admission.VersionedAttributes {
	gvk := object.GetObjectKind().GroupVersionKind()
	own, err := meta.Accessor(object)
	check(err)
	gvr := resource(gvk)
	attributes := admission.NewAttributesRecord(object, nil, gvk, own.GetNamespace(), own.GetName(), gvr, "",
		admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice", Groups: []string{"devs"}})
	return &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk,
		VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(nil)}
}

func resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
}

func (l *lab) mutate(kind string, generate func(object int) (string, []variable)) {
	of := l.random.Intn(len(l.objects))
	expression, variables := generate(of)
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	check(err)
	options := cel.OptionalVariableDeclarations{}
	for _, v := range variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options,
			environment.StoredExpressions)
	}
	var accessor cel.ExpressionAccessor = &patch.JSONPatchCondition{Expression: expression}
	if kind == "ApplyConfiguration" {
		accessor = &patch.ApplyConfigurationCondition{Expression: expression}
	}
	compiled := compiler.CompileMutatingEvaluator(accessor, patching(options), environment.StoredExpressions)
	if len(compiled.CompilationErrors()) > 0 {
		return
	}
	patcher := patch.NewJSONPatcher(compiled)
	if kind == "ApplyConfiguration" {
		patcher = patch.NewApplyConfigurationPatcher(compiled)
	}
	attributes := l.attributes(l.objects[of].DeepCopyObject())
	request := patch.Request{MatchedResource: attributes.GetResource(), VersionedAttributes: attributes,
		ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme.Scheme),
		TypeConverter:    l.converters.GetTypeConverter(attributes.VersionedKind)}
	ctx := compiler.CreateContext(l.ctx)
	patched, err, fell := attempt(func() (runtime.Object, error) {
		return patcher.Patch(ctx, request, celconfig.RuntimeCELCostBudget)
	})
	if fell {
		return
	}
	if err == nil {
		if _, ok := patched.(*unstructured.Unstructured); ok {
			patched, err = scheme.Scheme.ConvertToVersion(patched, attributes.GetKind().GroupVersion())
		}
	}
	made := line{Of: of, Patch: kind, Expression: expression, Variables: variables}
	if err != nil {
		made.Error = err.Error()
	} else {
		patched.GetObjectKind().SetGroupVersionKind(attributes.VersionedKind)
		made.Result, err = json.Marshal(patched)
		check(err)
	}
	l.lines = append(l.lines, made)
}

// The library of JSON patches panics at a value that an operation before has made null.
func attempt(work func() (runtime.Object, error)) (object runtime.Object, err error, fell bool) {
	defer func() {
		fell = recover() != nil
	}()
	object, err = work()
	return object, err, false
}

func patching(options cel.OptionalVariableDeclarations) cel.OptionalVariableDeclarations {
	options.HasPatchTypes = true
	return options
}

func (l *lab) validate() {
	of := l.random.Intn(len(l.objects))
	spec := l.validatingSpec()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	check(err)
	options := cel.OptionalVariableDeclarations{}
	for _, v := range spec.Variables {
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options,
			environment.StoredExpressions)
	}
	var validations, messages, annotations []cel.ExpressionAccessor
	for _, one := range spec.Validations {
		validations = append(validations,
			&validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason})
		if one.MessageExpression == "" {
			messages = append(messages, nil)
		} else {
			messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression})
		}
	}
	for _, one := range spec.AuditAnnotations {
		annotations = append(annotations,
			&validating.AuditAnnotationCondition{Key: one.Key, ValueExpression: one.ValueExpression})
	}
	compile := func(all []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(all, options, environment.StoredExpressions)
	}
	for _, evaluator := range []cel.ConditionEvaluator{compile(validations), compile(messages), compile(annotations)} {
		if len(evaluator.(*cel.CompositedConditionEvaluator).CompilationErrors()) > 0 {
			return
		}
	}
	validator := validating.NewValidator(compile(validations), nil, compile(annotations), compile(messages),
		spec.FailurePolicy, nil)
	attributes := l.attributes(l.objects[of].DeepCopyObject())
	result := validator.Validate(l.ctx, attributes.GetResource(), attributes, nil, nil, celconfig.RuntimeCELCostBudget, nil)
	made := line{Of: of}
	made.Spec, err = json.Marshal(spec)
	check(err)
	for _, found := range result.Decisions {
		made.Decisions = append(made.Decisions,
			decision{string(found.Action), found.Message, string(found.Reason)})
	}
	for _, found := range result.AuditAnnotations {
		made.Notes = append(made.Notes, note{string(found.Action), found.Key, found.Value, found.Error})
	}
	l.lines = append(l.lines, made)
}

type documents struct {
	discovery.DiscoveryInterface
	client openapi.Client
}

func (d documents) OpenAPIV3() openapi.Client { return d.client }

func (l *lab) checkTypes(client openapi.Client) {
	of := l.random.Intn(len(l.objects))
	gvk := l.objects[of].GetObjectKind().GroupVersionKind()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, object := range l.objects {
		mapper.Add(object.GetObjectKind().GroupVersionKind(), meta.RESTScopeNamespace)
	}
	checker := validating.TypeChecker{RestMapper: mapper,
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: documents{client: client}}}
	spec := l.typedSpec(gvk.Kind)
	spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{gvk.Group},
			APIVersions: []string{gvk.Version}, Resources: []string{resource(gvk).Resource}}}}}}
	made := line{Of: of, Checked: true}
	for _, warning := range checker.Check(&admissionv1.ValidatingAdmissionPolicy{Spec: spec}) {
		made.Warnings = append(made.Warnings, map[string]string{"fieldRef": warning.FieldRef, "warning": warning.Warning})
	}
	var err error
	made.Spec, err = json.Marshal(spec)
	check(err)
	l.lines = append(l.lines, made)
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
