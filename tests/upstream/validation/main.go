// Asks upstream's own strategies what is wrong with objects, for rowplane's tests to compare with.
//
//	go run . ../../../testdata/validation/bases ../../../testdata/validation/cases
//
// Each base is a file of valid objects. Every object is created, updated and given a new status many times, with one
// thing wrong at a time (mutate.go); what upstream says of each goes to a file of cases with the base's name.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"
	_ "k8s.io/kubernetes/pkg/controlplane"
	"sigs.k8s.io/yaml"
)

const uid = types.UID("6b1f2c3d-0000-4000-8000-000000000001")

var born = metav1.Date(2026, 1, 2, 3, 4, 5, 0, metav1.Now().UTC().Location())

// A set of cases of one object.
type set struct {
	// The object as upstream would store it.
	Object json.RawMessage `json:"object"`
	Cases  []result        `json:"cases"`
}

// A result is a change to the object and what upstream says of it, by verb.
type result struct {
	mutation
	Verdicts map[string][]cause `json:"verdicts"`
}

// A cause is type, field and message.
type cause [3]string

func main() {
	log.SetFlags(0)
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	capabilities.Setup(true, 0)
	if len(os.Args) != 3 {
		log.Fatal("usage: validation BASES CASES")
	}
	bases, err := filepath.Glob(filepath.Join(os.Args[1], "*.yaml"))
	check(err)
	for _, base := range bases {
		text, err := os.ReadFile(base)
		check(err)
		var sets []set
		total := 0
		for _, document := range strings.Split(string(text), "\n---\n") {
			one := ask([]byte(document))
			total += len(one.Cases)
			sets = append(sets, one)
		}
		name := strings.TrimSuffix(filepath.Base(base), ".yaml") + ".json.gz"
		write(filepath.Join(os.Args[2], name), sets)
		fmt.Println(name, total)
	}
}

func write(path string, sets []set) {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	check(err)
	encoder := json.NewEncoder(packed)
	encoder.SetEscapeHTML(false)
	for _, one := range sets {
		check(encoder.Encode(one))
	}
	check(packed.Close())
	check(os.WriteFile(path, out.Bytes(), 0o644))
}

// An asker knows a valid object and its kind's rules.
type asker struct {
	gvk    schema.GroupVersionKind
	rules  rules
	ctx    context.Context
	stored runtime.Object
}

func ask(document []byte) set {
	body, err := yaml.YAMLToJSON(document)
	check(err)
	var object metav1.TypeMeta
	check(json.Unmarshal(body, &object))
	gvk := object.GroupVersionKind()
	rules, known := strategies[gvk.GroupKind()]
	if !known {
		log.Fatalf("no strategy for %v", gvk)
	}
	asker := &asker{gvk: gvk, rules: rules}
	asker.ctx = asker.context("")
	internal, err := asker.decode(body)
	check(err)
	status := copyStatus(body)
	if causes := asker.create(internal); causes != nil {
		log.Fatalf("%v %s: the base is not valid: %v", gvk, name(internal), causes)
	}
	// A base may say what its status is, which create drops.
	stored := asker.encode(internal)
	if status != nil {
		stored["status"] = status
	}
	asker.stored, err = asker.decode(encode(stored))
	check(err)
	accessor(asker.stored).SetResourceVersion("1")
	stored = asker.encode(asker.stored)
	cases := asker.cases(stored)
	return set{Object: encode(stored), Cases: cases}
}

func copyStatus(body []byte) any {
	var object map[string]any
	check(json.Unmarshal(body, &object))
	return object["status"]
}

func (a *asker) cases(stored map[string]any) []result {
	var results []result
	for _, mutation := range mutations(stored) {
		changed, err := a.decode(encode(mutation.apply(stored)))
		if err != nil || filledIn(a.gvk.Kind, mutation) {
			continue
		}
		verdicts := map[string][]cause{}
		try := func(verb string, ask func(runtime.Object) []cause) {
			// Upstream panics on some objects; a server then answers 500 and drops the connection.
			defer func() { _ = recover() }()
			verdicts[verb] = stable(ask(changed.DeepCopyObject()))
		}
		if status := strings.HasPrefix(mutation.Path, "/status"); !status || a.rules.status == nil {
			try("create", a.create)
			try("update", func(object runtime.Object) []cause { return a.update(a.rules.main, "", object) })
		} else {
			try("status", func(object runtime.Object) []cause { return a.update(a.rules.status, "status", object) })
		}
		results = append(results, result{mutation, verdicts})
	}
	return results
}

// Upstream walks maps, so that two answers to one question may differ in their order.
func stable(causes []cause) []cause {
	sort.Slice(causes, func(i, j int) bool {
		return fmt.Sprint(causes[i]) < fmt.Sprint(causes[j])
	})
	unique := []cause{}
	for i, cause := range causes {
		if i == 0 || cause != causes[i-1] {
			unique = append(unique, cause)
		}
	}
	return unique
}

func (a *asker) context(subresource string) context.Context {
	ctx := request.WithNamespace(request.NewContext(), a.namespace())
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "someone", Groups: []string{"system:masters"}})
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true,
		APIGroup:          a.gvk.Group,
		APIVersion:        a.gvk.Version,
		Resource:          a.rules.resource,
		Subresource:       subresource,
	})
}

func (a *asker) namespace() string {
	if a.rules.main.NamespaceScoped() {
		return "default"
	}
	return ""
}

func (a *asker) create(object runtime.Object) []cause {
	accessor(object).SetResourceVersion("")
	return causes(rest.BeforeCreate(a.rules.main, a.ctx, object))
}

func (a *asker) update(strategy rest.RESTUpdateStrategy, subresource string, object runtime.Object) []cause {
	accessor(object).SetResourceVersion("1")
	return causes(rest.BeforeUpdate(strategy, a.context(subresource), object, a.stored.DeepCopyObject()))
}

// decode also fills in defaults.
func (a *asker) decode(body []byte) (runtime.Object, error) {
	decoder := legacyscheme.Codecs.UniversalDecoder(schema.GroupVersion{Group: a.gvk.Group, Version: runtime.APIVersionInternal})
	object, err := runtime.Decode(decoder, body)
	if err != nil {
		return nil, err
	}
	accessor(object).SetUID(uid)
	accessor(object).SetCreationTimestamp(born)
	return object, nil
}

func (a *asker) encode(object runtime.Object) map[string]any {
	encoder := legacyscheme.Codecs.LegacyCodec(a.gvk.GroupVersion())
	body, err := runtime.Encode(encoder, object)
	check(err)
	var out map[string]any
	check(json.Unmarshal(body, &out))
	return out
}

func causes(err error) []cause {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return []cause{{"Error", "", err.Error()}}
	}
	var out []cause
	for _, found := range status.Status().Details.Causes {
		// A picture of a difference follows.
		message, _, _ := strings.Cut(found.Message, "\n")
		out = append(out, cause{string(found.Type), found.Field, message})
	}
	if out == nil {
		return []cause{{"Error", "", err.Error()}}
	}
	return out
}

func accessor(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	check(err)
	return accessor
}

func name(object runtime.Object) string { return accessor(object).GetName() }

func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return bytes.TrimSpace(out.Bytes())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
