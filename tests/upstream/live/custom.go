package main

import (
	"context"
	"fmt"
	"log"

	autoscaling "k8s.io/api/autoscaling/v1"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	controllers "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

// keeper makes a ConfigMap for every Site, and says in the Site's status what it has done.
type keeper struct {
	client.Client
}

// Reconcile makes one ConfigMap say what its Site says.
func (k *keeper) Reconcile(ctx context.Context, request controllers.Request) (controllers.Result, error) {
	site := &Site{}
	if err := k.Get(ctx, request.NamespacedName, site); err != nil {
		return controllers.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(site, siteFinalizer) {
			return controllers.Result{}, client.IgnoreNotFound(k.Update(ctx, site))
		}
		return controllers.Result{}, nil
	}
	if controllerutil.AddFinalizer(site, siteFinalizer) {
		return controllers.Result{}, k.Update(ctx, site)
	}
	page := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, k.Client, page, func() error {
		page.Data = map[string]string{"text": site.Spec.Text}
		return controllerutil.SetControllerReference(site, page, k.Scheme())
	})
	if err != nil {
		return controllers.Result{}, err
	}
	site.Status.ObservedGeneration = site.Generation
	site.Status.Replicas = *site.Spec.Replicas
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: site.Generation,
	})
	return controllers.Result{}, k.Status().Update(ctx, site)
}

// custom installs a definition, runs an operator for it, and lets it follow what happens to its objects, as a project
// made with kubebuilder does in its suite.
func custom(ctx context.Context, config *rest.Config) (int, error) {
	controllers.SetLogger(klog.Background())
	definition := &extensions.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(sites), definition); err != nil {
		return 0, err
	}
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return 0, err
	}
	metav1.AddToGroupVersion(known, siteVersion)
	known.AddKnownTypes(siteVersion, &Site{}, &SiteList{})
	options := envtest.CRDInstallOptions{CRDs: []*extensions.CustomResourceDefinition{definition}, Scheme: known}
	if _, err := envtest.InstallCRDs(config, options); err != nil {
		return 0, err
	}
	manager, err := controllers.NewManager(config, controllers.Options{Scheme: known, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return 0, err
	}
	err = controllers.NewControllerManagedBy(manager).For(&Site{}).Owns(&core.ConfigMap{}).Complete(&keeper{manager.GetClient()})
	if err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	direct, err := client.NewWithWatch(config, client.Options{Scheme: known})
	if err != nil {
		return 0, err
	}
	differences, err := keep(ctx, direct)
	stop()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	if err != nil {
		return differences, err
	}
	// It waits until the definition has gone.
	return differences, envtest.UninstallCRDs(config, options)
}

// keep does to Sites what their users do, and waits for what the operator makes of it.
func keep(ctx context.Context, direct client.WithWatch) (int, error) {
	names := func(at int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("site-%02d", at)}
	}
	for at := range mirrored {
		site := &Site{ObjectMeta: names(at), Spec: SiteSpec{Text: "first", Color: []string{"red", "blue"}[at%2]}}
		if err := direct.Create(ctx, site); err != nil {
			return 0, err
		}
		if site.Spec.Replicas == nil || *site.Spec.Replicas != 1 {
			return 0, fmt.Errorf("the default is missing: %v", site.Spec)
		}
	}
	if err := await(ctx, direct, &core.ConfigMapList{}, mirrored, written("first")); err != nil {
		return 0, err
	}
	if err := await(ctx, direct, &SiteList{}, mirrored, ready(1)); err != nil {
		return 0, err
	}
	for at := range mirrored {
		site := &Site{ObjectMeta: names(at)}
		if err := direct.Get(ctx, client.ObjectKeyFromObject(site), site); err != nil {
			return 0, err
		}
		before := site.DeepCopyObject().(client.Object)
		site.Spec.Text = "second"
		if err := direct.Patch(ctx, site, client.MergeFrom(before)); err != nil {
			return 0, err
		}
	}
	if err := await(ctx, direct, &core.ConfigMapList{}, mirrored, written("second")); err != nil {
		return 0, err
	}
	if err := await(ctx, direct, &SiteList{}, mirrored, ready(2)); err != nil {
		return 0, err
	}
	differences, err := use(ctx, direct, names)
	if err != nil {
		return differences, err
	}
	// The operator takes its finalizer off, and the garbage collector takes the ConfigMaps.
	if err := direct.DeleteAllOf(ctx, &Site{}, client.InNamespace(namespace)); err != nil {
		return 0, err
	}
	if err := await(ctx, direct, &SiteList{}, 0, nil); err != nil {
		return 0, err
	}
	return differences, await(ctx, direct, &core.ConfigMapList{}, 0, nil)
}

// use is the rest of what clients do with custom resources, and how many answers were wrong.
func use(ctx context.Context, direct client.WithWatch, names func(int) metav1.ObjectMeta) (int, error) {
	differences := 0
	expect := func(right bool, what string, found any) {
		if !right {
			differences++
			log.Printf("%s: %v", what, found)
		}
	}
	err := direct.Create(ctx, &Site{ObjectMeta: names(90), Spec: SiteSpec{Text: "x", Color: "green"}})
	expect(errors.IsInvalid(err), "a value that the schema refuses", err)
	err = direct.Create(ctx, &Site{ObjectMeta: names(91), Spec: SiteSpec{Text: "none", Color: "red"}})
	expect(errors.IsInvalid(err), "a value that a rule refuses", err)

	red := &SiteList{}
	byColor := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.color", "red")}
	err = direct.List(ctx, red, client.InNamespace(namespace), byColor)
	expect(err == nil && len(red.Items) == mirrored/2, "Sites that a field selects", err)

	old := &unstructured.Unstructured{}
	old.SetAPIVersion("example.com/v1beta1")
	old.SetKind("Site")
	if err := direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names(3).Name}, old); err != nil {
		return differences, err
	}
	text, _, _ := unstructured.NestedString(old.Object, "spec", "text")
	expect(text == "second", "a Site in its older version", old)

	site := &Site{ObjectMeta: names(4)}
	scale := &autoscaling.Scale{}
	if err := direct.SubResource("scale").Get(ctx, site, scale); err != nil {
		return differences, err
	}
	scale.Spec.Replicas = 7
	if err := direct.SubResource("scale").Update(ctx, site, client.WithSubResourceBody(scale)); err != nil {
		return differences, err
	}
	err = direct.Get(ctx, client.ObjectKeyFromObject(site), site)
	expect(err == nil && *site.Spec.Replicas == 7, "a Site that was scaled", site.Spec)

	applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "blue", "tags": []any{"a"}}}}
	applied.SetAPIVersion(siteVersion.String())
	applied.SetKind("Site")
	applied.SetNamespace(namespace)
	applied.SetName(names(4).Name)
	err = direct.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("other"), client.ForceOwnership)
	expect(err == nil, "an apply", err)
	tags, _, _ := unstructured.NestedStringSlice(applied.Object, "spec", "tags")
	expect(len(tags) == 1, "what was applied", applied)
	return differences, nil
}

func written(text string) func(client.Object) bool {
	return func(object client.Object) bool { return object.(*core.ConfigMap).Data["text"] == text }
}

func ready(generation int64) func(client.Object) bool {
	return func(object client.Object) bool {
		status := object.(*Site).Status
		return status.ObservedGeneration == generation && meta.IsStatusConditionTrue(status.Conditions, "Ready")
	}
}
