// What upstream's quota evaluators, LimitRanger and ServiceAccount make of random objects. Each line of the output is a case.
//
//	go run . ../../../testdata/plugins/cases.jsonl.gz
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	api "k8s.io/kubernetes/pkg/apis/core"
	conversions "k8s.io/kubernetes/pkg/apis/core/v1"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/utils/clock"
)

type line struct {
	Kind     string              `json:"kind"`
	Object   any                 `json:"object"`
	Usage    corev1.ResourceList `json:"usage,omitempty"`
	Scopes   []string            `json:"scopes,omitempty"`
	Missing  string              `json:"missing,omitempty"`
	Range    any                 `json:"range,omitempty"`
	Account  any                 `json:"account,omitempty"`
	Result   any                 `json:"result,omitempty"`
	Problems []string            `json:"problems,omitempty"`
}

var scopes = []corev1.ScopedResourceSelectorRequirement{
	{ScopeName: "Terminating", Operator: "Exists"},
	{ScopeName: "NotTerminating", Operator: "Exists"},
	{ScopeName: "BestEffort", Operator: "Exists"},
	{ScopeName: "NotBestEffort", Operator: "Exists"},
	{ScopeName: "CrossNamespacePodAffinity", Operator: "Exists"},
	{ScopeName: "PriorityClass", Operator: "Exists"},
	{ScopeName: "PriorityClass", Operator: "DoesNotExist"},
	{ScopeName: "PriorityClass", Operator: "In", Values: []string{"a", "b"}},
	{ScopeName: "PriorityClass", Operator: "NotIn", Values: []string{"a"}},
	{ScopeName: "VolumeAttributesClass", Operator: "Exists"},
	{ScopeName: "VolumeAttributesClass", Operator: "DoesNotExist"},
	{ScopeName: "VolumeAttributesClass", Operator: "In", Values: []string{"a", "b"}},
	{ScopeName: "VolumeAttributesClass", Operator: "NotIn", Values: []string{"a"}},
}

var obligatory = []corev1.ResourceName{"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "pods"}

func main() {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	check(err)
	cases := 0
	write := func(case_ line) {
		text, err := json.Marshal(case_)
		check(err)
		_, err = zip.Write(append(text, '\n'))
		check(err)
		cases++
	}
	r := rand.New(rand.NewSource(17))
	pods, services := core.NewPodEvaluator(nil, clock.RealClock{}), core.NewServiceEvaluator(nil)
	claims, devices := core.NewPersistentVolumeClaimEvaluator(nil), core.NewResourceClaimEvaluator(nil, nil, nil, nil)
	for range 2000 {
		write(measured("pods", pods, pod(r)))
	}
	for range 500 {
		write(measured("services", services, service(r)))
		write(measured("persistentvolumeclaims", claims, claim(r)))
		write(measured("resourceclaims", devices, resourceClaim(r)))
	}
	for range 2000 {
		write(limitedPod(r))
	}
	for range 500 {
		write(limitedClaim(r))
	}
	for range 1000 {
		write(accounted(r))
	}
	check(zip.Close())
	check(os.WriteFile(os.Args[1], packed.Bytes(), 0o644))
	fmt.Println(cases, "cases,", packed.Len(), "bytes")
}

func measured(kind string, evaluator quota.Evaluator, object runtime.Object) line {
	usage, err := evaluator.Usage(object)
	check(err)
	matching := []string{}
	for _, scope := range scopes {
		found, err := evaluator.MatchingScopes(object, []corev1.ScopedResourceSelectorRequirement{scope})
		check(err)
		if len(found) > 0 {
			matching = append(matching, fmt.Sprint(scope))
		}
	}
	missing := ""
	if err := evaluator.Constraints(obligatory, object); err != nil {
		missing = err.Error()
	}
	return line{Kind: kind, Object: object, Usage: usage, Scopes: matching, Missing: missing}
}

func problems(err error) []string {
	if err == nil {
		return nil
	}
	found := []string{}
	seen := map[string]bool{}
	for _, err := range err.(utilerrors.Aggregate).Errors() {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			found = append(found, err.Error())
		}
	}
	sort.Strings(found)
	return found
}

func limitedPod(r *rand.Rand) line {
	limits := limitRange(r)
	external := pod(r)
	external.Status = corev1.PodStatus{}
	given := external.DeepCopy()
	internal := internalPod(external)
	check(limitranger.PodMutateLimitFunc(limits, internal))
	wrong := problems(limitranger.PodValidateLimitFunc(limits, internal))
	changed := externalPod(internal)
	return line{Kind: "limited pods", Object: given, Range: limits, Problems: wrong, Result: map[string]any{
		"annotation":     changed.Annotations["kubernetes.io/limit-ranger"],
		"containers":     resources(changed.Spec.Containers),
		"initContainers": resources(changed.Spec.InitContainers),
	}}
}

func resources(containers []corev1.Container) []corev1.ResourceRequirements {
	found := []corev1.ResourceRequirements{}
	for _, container := range containers {
		found = append(found, container.Resources)
	}
	return found
}

func limitedClaim(r *rand.Rand) line {
	limits, external, internal := limitRange(r), claim(r), &api.PersistentVolumeClaim{}
	check(conversions.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(external.DeepCopy(), internal, nil))
	wrong := problems(limitranger.PersistentVolumeClaimValidateLimitFunc(limits, internal))
	return line{Kind: "limited claims", Object: external, Range: limits, Problems: wrong}
}

var suffix = regexp.MustCompile(`kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}`)

func accounted(r *rand.Rand) line {
	account, external := account(r), podOfAccount(r)
	internal := internalPod(external.DeepCopy())
	plugin := serviceaccount.NewServiceAccount()
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	check(factory.Core().V1().ServiceAccounts().Informer().GetStore().Add(account))
	plugin.SetReadyFunc(func() bool { return true })
	attributes := admission.NewAttributesRecord(internal, nil, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "n", "p",
		schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", admission.Create, nil, false, nil)
	if err := plugin.Admit(context.Background(), attributes, nil); err != nil {
		return line{Kind: "accounted pods", Object: external, Account: account, Problems: []string{err.Error()}}
	}
	changed := externalPod(internal)
	text, err := json.Marshal(changed.Spec)
	check(err)
	var spec any
	check(json.Unmarshal(suffix.ReplaceAll(text, []byte("kube-api-access-made")), &spec))
	return line{Kind: "accounted pods", Object: external, Account: account, Result: spec}
}

func internalPod(external *corev1.Pod) *api.Pod {
	internal := &api.Pod{}
	check(conversions.Convert_v1_Pod_To_core_Pod(external, internal, nil))
	return internal
}

func externalPod(internal *api.Pod) *corev1.Pod {
	external := &corev1.Pod{}
	check(conversions.Convert_core_Pod_To_v1_Pod(internal, external, nil))
	return external
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
