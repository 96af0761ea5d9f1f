package main

import (
	"context"
	"encoding/json"
	"log"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsconfig "k8s.io/client-go/applyconfigurations/apps/v1"
	coreconfig "k8s.io/client-go/applyconfigurations/core/v1"
	metaconfig "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/csaupgrade"
)

// Who wrote before, and who applies from now on.
const (
	clientSide = "kubectl-client-side-apply"
	serverSide = "kubectl"
)

// upgrade lets a program that has written Deployments go over to server-side apply, with client-go's csaupgrade: what it
// owned as a writer it then owns as an applier, so that what it no longer applies goes.
func upgrade(ctx context.Context, config *rest.Config) (int, error) {
	differences := 0
	for _, form := range []string{inJSON, inProtobuf} {
		config := rest.CopyConfig(config)
		config.ContentType = form
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return 0, err
		}
		deployments := clients.AppsV1().Deployments(namespace)
		_, kind, _ := strings.Cut(form, "/")
		kind = strings.ToLower(strings.ReplaceAll(kind, ".", "-"))
		for name, upgraded := range map[string]bool{"upgraded-" + kind: true, "left-" + kind: false} {
			found, err := goOver(ctx, deployments, name, upgraded)
			if err != nil {
				return 0, err
			}
			differences += found
		}
	}
	return differences, nil
}

func goOver(ctx context.Context, deployments typed.DeploymentInterface, name string, upgraded bool) (int, error) {
	options := metav1.CreateOptions{FieldManager: clientSide}
	before, err := deployments.Create(ctx, deployment(name), options)
	if err != nil {
		return 0, err
	}
	// A patch of somebody else, which the first attempt does not know of.
	note := []byte(`{"metadata": {"annotations": {"noted": "yes"}}}`)
	_, err = deployments.Patch(ctx, name, types.MergePatchType, note, metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		return 0, err
	}
	differences := 0
	if upgraded {
		if _, err := hand(ctx, deployments, before); !errors.IsConflict(err) {
			differences++
			log.Printf("%s: a stale patch was not a conflict: %v", name, err)
		}
		if before, err = deployments.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return 0, err
		}
		after, err := hand(ctx, deployments, before)
		if err != nil {
			return 0, err
		}
		if err := csaupgrade.UpgradeManagedFields(before, sets.New(clientSide), serverSide); err != nil {
			return 0, err
		}
		if want, got := owners(before), owners(after); !slices.Equal(want, got) {
			differences++
			log.Printf("%s is owned by %v, not by %v", name, got, want)
		}
		if !equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.Generation != after.Generation {
			differences++
			log.Printf("%s has become another: %v", name, after)
		}
		if left, err := csaupgrade.UpgradeManagedFieldsPatch(after, sets.New(clientSide), serverSide); err != nil || left != nil {
			differences++
			log.Printf("%s is not wholly upgraded: %s %v", name, left, err)
		}
	}
	applied, err := deployments.Apply(ctx, smaller(name), metav1.ApplyOptions{FieldManager: serverSide, Force: true})
	if err != nil {
		return 0, err
	}
	// Without the upgrade the writer of old still owns what the applier leaves out.
	_, label := applied.Labels["old"]
	sidecar := len(applied.Spec.Template.Spec.Containers) > 1
	if label == upgraded || sidecar == upgraded || applied.Annotations["noted"] != "yes" {
		differences++
		log.Printf("%s: after the first apply: %v", name, applied)
	}
	return differences, nil
}

// hand gives what the writer owns to the applier, if nobody has written meanwhile.
func hand(ctx context.Context, deployments typed.DeploymentInterface, object *apps.Deployment) (*apps.Deployment, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, sets.New(clientSide), serverSide)
	if err != nil {
		return nil, err
	}
	return deployments.Patch(ctx, object.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "upgrader"})
}

// owners tells who owns what, but not since when.
func owners(object *apps.Deployment) []string {
	found := []string{}
	for _, entry := range object.ManagedFields {
		entry.Time = nil
		text, err := json.Marshal(entry)
		if err != nil {
			log.Fatal(err)
		}
		found = append(found, string(text))
	}
	slices.Sort(found)
	return found
}

func deployment(name string) *apps.Deployment {
	labels := map[string]string{"app": name}
	return &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name, "old": "yes"}},
		Spec: apps.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: core.PodSpec{Containers: []core.Container{
					{Name: "web", Image: "web:1", Ports: []core.ContainerPort{{ContainerPort: 80}}},
					{Name: "sidecar", Image: "sidecar:1"},
				}},
			},
		},
	}
}

// smaller is the same without a label and a container.
func smaller(name string) *appsconfig.DeploymentApplyConfiguration {
	labels := map[string]string{"app": name}
	port := coreconfig.ContainerPort().WithContainerPort(80)
	web := coreconfig.Container().WithName("web").WithImage("web:1").WithPorts(port)
	template := coreconfig.PodTemplateSpec().WithLabels(labels).WithSpec(coreconfig.PodSpec().WithContainers(web))
	selector := metaconfig.LabelSelector().WithMatchLabels(labels)
	spec := appsconfig.DeploymentSpec().WithSelector(selector).WithTemplate(template)
	return appsconfig.Deployment(name, namespace).WithLabels(labels).WithSpec(spec)
}
