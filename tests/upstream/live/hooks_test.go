package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	controllers "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

var (
	pageVersion    = schema.GroupVersion{Group: "hooks.example.com", Version: "v1"}
	oldPageVersion = schema.GroupVersion{Group: "hooks.example.com", Version: "v1beta1"}
)

// Page is a custom resource whose older version calls its title a heading.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Title string `json:"title"`
		Words *int32 `json:"words,omitempty"`
	} `json:"spec"`
}

type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Page `json:"items"`
}

type OldPage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Heading string `json:"heading"`
		Words   *int32 `json:"words,omitempty"`
	} `json:"spec"`
}

type OldPageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OldPage `json:"items"`
}

func copied[T any](object *T) *T {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	other := new(T)
	if err := json.Unmarshal(text, other); err != nil {
		panic(err)
	}
	return other
}

func (p *Page) DeepCopyObject() runtime.Object        { return copied(p) }
func (l *PageList) DeepCopyObject() runtime.Object    { return copied(l) }
func (p *OldPage) DeepCopyObject() runtime.Object     { return copied(p) }
func (l *OldPageList) DeepCopyObject() runtime.Object { return copied(l) }

// Hub says that other versions are converted by way of this one.
func (p *Page) Hub() {}

func (p *OldPage) ConvertTo(hub conversion.Hub) error {
	page := hub.(*Page)
	page.ObjectMeta, page.Spec.Title, page.Spec.Words = p.ObjectMeta, p.Spec.Heading, p.Spec.Words
	return nil
}

func (p *OldPage) ConvertFrom(hub conversion.Hub) error {
	page := hub.(*Page)
	p.ObjectMeta, p.Spec.Heading, p.Spec.Words = page.ObjectMeta, page.Spec.Title, page.Spec.Words
	return nil
}

// librarian is the defaulting and the validating hook of Pages.
type librarian struct{}

func (librarian) Default(ctx context.Context, page *Page) error {
	if page.Spec.Words == nil {
		words := int32(len(strings.Fields(page.Spec.Title)))
		page.Spec.Words = &words
	}
	return nil
}

func (librarian) ValidateCreate(ctx context.Context, page *Page) (admission.Warnings, error) {
	if page.Spec.Title == "untitled" {
		return nil, fmt.Errorf("a page needs a title")
	}
	return admission.Warnings{"pages are read by people"}, nil
}

func (librarian) ValidateUpdate(ctx context.Context, before, page *Page) (admission.Warnings, error) {
	if *page.Spec.Words < *before.Spec.Words {
		return nil, fmt.Errorf("pages only grow: %d words before", *before.Spec.Words)
	}
	return nil, nil
}

func (librarian) ValidateDelete(ctx context.Context, page *Page) (admission.Warnings, error) {
	if page.Labels["keep"] == "yes" {
		return nil, fmt.Errorf("this page is kept")
	}
	return nil, nil
}

const pages = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pages.hooks.example.com}
spec:
  group: hooks.example.com
  scope: Namespaced
  names: {plural: pages, singular: page, kind: Page, listKind: PageList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: system, name: webhook-service, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {title: {type: string}, words: {type: integer, format: int32}}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {heading: {type: string}, words: {type: integer, format: int32}}}
`

const mutating = `
metadata: {name: mutating-webhook-configuration}
webhooks:
- name: mpage.kb.io
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: system, name: webhook-service, path: /mutate-hooks-example-com-v1-page}}
  failurePolicy: Fail
  sideEffects: None
  rules: [{apiGroups: [hooks.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pages]}]
`

const validating = `
metadata: {name: validating-webhook-configuration}
webhooks:
- name: vpage.kb.io
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: system, name: webhook-service, path: /validate-hooks-example-com-v1-page}}
  failurePolicy: Fail
  sideEffects: None
  rules: [{apiGroups: [hooks.example.com], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [pages]}]
`

// hooked is the suite of an operator that kubebuilder has made with all three sorts of hooks.
func hooked(t *testing.T) {
	definition := &extensions.CustomResourceDefinition{}
	mutates := &admissionregistration.MutatingWebhookConfiguration{}
	validates := &admissionregistration.ValidatingWebhookConfiguration{}
	for text, object := range map[string]any{pages: definition, mutating: mutates, validating: validates} {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatal(err)
		}
	}
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(known, pageVersion)
	metav1.AddToGroupVersion(known, oldPageVersion)
	known.AddKnownTypes(pageVersion, &Page{}, &PageList{})
	known.AddKnownTypeWithName(oldPageVersion.WithKind("Page"), &OldPage{})
	known.AddKnownTypeWithName(oldPageVersion.WithKind("PageList"), &OldPageList{})
	plane := &envtest.Environment{
		CRDInstallOptions: envtest.CRDInstallOptions{CRDs: []*extensions.CustomResourceDefinition{definition}, Scheme: known},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			MutatingWebhooks:   []*admissionregistration.MutatingWebhookConfiguration{mutates},
			ValidatingWebhooks: []*admissionregistration.ValidatingWebhookConfiguration{validates},
		},
	}
	config := startPlane(t, plane)
	defer stopPlane(t, plane)
	stop := serveHooks(t, plane, config, known)
	defer stop()
	warnings := &heard{}
	config.WarningHandler = warnings
	direct, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	live(t, direct, warnings)
}

// serveHooks runs the operator until the hooks listen.
func serveHooks(t *testing.T, plane *envtest.Environment, config *rest.Config, known *runtime.Scheme) func() {
	options := plane.WebhookInstallOptions
	manager, err := controllers.NewManager(config, controllers.Options{
		Scheme:  known,
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: options.LocalServingHost, Port: options.LocalServingPort,
			CertDir: options.LocalServingCertDir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = controllers.NewWebhookManagedBy(manager, &Page{}).WithDefaulter(librarian{}).WithValidator(librarian{}).Complete()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	address := net.JoinHostPort(options.LocalServingHost, fmt.Sprint(options.LocalServingPort))
	for {
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			connection.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// heard notes the warnings of answers.
type heard struct{ texts []string }

func (h *heard) HandleWarningHeader(_ int, _ string, text string) { h.texts = append(h.texts, text) }

// live does to Pages, in both versions, what the hooks have something to say about.
func live(t *testing.T, direct client.Client, warnings *heard) {
	ctx := context.Background()
	named := metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"keep": "yes"}}
	old := &OldPage{ObjectMeta: named}
	old.Spec.Heading = "a first page"
	// The hooks are of version v1, and see what comes in v1beta1 converted.
	if err := direct.Create(ctx, old); err != nil {
		t.Fatal(err)
	}
	if old.Spec.Words == nil || *old.Spec.Words != 3 {
		t.Errorf("the hook's default is missing: %v", old.Spec)
	}
	if len(warnings.texts) != 1 || warnings.texts[0] != "pages are read by people" {
		t.Errorf("warnings: %q", warnings.texts)
	}
	page := &Page{}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(old), page); err != nil {
		t.Fatal(err)
	}
	if page.Spec.Title != "a first page" {
		t.Errorf("converted: %v", page.Spec)
	}
	refused := func(err error, why string) {
		t.Helper()
		if !errors.IsForbidden(err) || !strings.Contains(err.Error(), `admission webhook "vpage.kb.io" denied the request: `+why) {
			t.Errorf("%v, where the hook says %s", err, why)
		}
	}
	fewer := int32(1)
	page.Spec.Words = &fewer
	refused(direct.Update(ctx, page), "pages only grow: 3 words before")
	before := copied(old)
	old.Spec.Words = &fewer
	refused(direct.Patch(ctx, old, client.MergeFrom(before)), "pages only grow: 3 words before")
	untitled := &Page{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	untitled.Spec.Title = "untitled"
	refused(direct.Create(ctx, untitled), "a page needs a title")
	refused(direct.Delete(ctx, old), "this page is kept")
	list := &OldPageList{}
	if err := direct.List(ctx, list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Spec.Heading != "a first page" {
		t.Errorf("listed: %v", list.Items)
	}
	unlabelled := copied(before)
	unlabelled.Labels = nil
	if err := direct.Patch(ctx, unlabelled, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := direct.Delete(ctx, unlabelled); err != nil {
		t.Fatal(err)
	}
}
