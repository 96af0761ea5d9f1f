// Live drives a running rowplane with client-go, in protobuf and in JSON, and with controller-runtime:
//
//	helm template x tests/fixtures/chart | live forms KUBECONFIG
//	live follow KUBECONFIG
//	live operate KUBECONFIG
//	live custom KUBECONFIG
//	live outlive KUBECONFIG
//	live upgrade KUBECONFIG
//	live roll KUBECONFIG
//	live pod USER
//
// forms creates the objects that it reads, once in each form, and reads each back in the other one. follow lets
// informers of every sort follow many writes; what they hold in the end is compared with a list. operate runs a
// controller, custom one of a kind that it defines itself. outlive is follow over 10,000 objects in a server that is killed, replaced and compacted meanwhile, by
// whom it is told so on standard input (tests/client_go.rs). upgrade goes over to server-side apply. roll uses
// replicas that are restarted meanwhile, and counts what its transports see of that (tests/rolling_restarts.rs). pod runs in a
// Pod (tests/support/pod.rs). Use an empty server.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	inJSON     = "application/json"
	inProtobuf = "application/vnd.kubernetes.protobuf"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: live TEST KUBECONFIG")
	}
	name := os.Args[1]
	config, err := configuration(name, os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	// No limit.
	config.QPS = -1
	tests := map[string]func(context.Context, *rest.Config) (int, error){
		"forms":   forms,
		"follow":  follow,
		"operate": operate,
		"custom":  custom,
		"outlive": outlive,
		"upgrade": upgrade,
		"roll":    roll,
		"pod":     pod,
	}
	test, known := tests[name]
	if !known {
		log.Fatalf("no test %q", name)
	}
	differences, err := test(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d differences", name, differences)
	if differences > 0 {
		os.Exit(1)
	}
}

func configuration(test, path string) (*rest.Config, error) {
	if test == "pod" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", path)
}

func forms(ctx context.Context, config *rest.Config) (int, error) {
	objects, err := read(os.Stdin)
	if err != nil {
		return 0, err
	}
	if len(objects) == 0 {
		return 0, fmt.Errorf("nothing on standard input")
	}
	return roundTrips(ctx, config, objects)
}

func read(input io.Reader) ([]runtime.Object, error) {
	objects := []runtime.Object{}
	text, err := io.ReadAll(input)
	if err != nil {
		return nil, err
	}
	for _, document := range strings.Split(string(text), "\n---") {
		document = strings.TrimPrefix(document, "---")
		if !strings.Contains(document, "kind:") {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, document)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// A form is how a client speaks with the server.
type form struct {
	contentType string
	config      *rest.Config
}

func (f form) client(version schema.GroupVersion) (*rest.RESTClient, error) {
	config := rest.CopyConfig(f.config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = f.contentType, f.contentType
	return rest.RESTClientFor(config)
}

// A place is where an object is.
type place struct {
	mapping *meta.RESTMapping
	kind    schema.GroupVersionKind
	name    string
}

func (p place) request(verb *rest.Request) *rest.Request {
	return verb.NamespaceIfScoped("default", p.mapping.Scope.Name() == meta.RESTScopeNameNamespace).Resource(p.mapping.Resource.Resource)
}

// untype takes out what a message has no field for, and kube-apiserver says in JSON only.
func untype(object runtime.Object) {
	if set, is := object.(*apps.StatefulSet); is {
		for at := range set.Spec.VolumeClaimTemplates {
			set.Spec.VolumeClaimTemplates[at].TypeMeta = metav1.TypeMeta{}
		}
	}
}

func roundTrips(ctx context.Context, config *rest.Config, objects []runtime.Object) (int, error) {
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	groups, err := restmapper.GetAPIGroupResources(discovered)
	if err != nil {
		return 0, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	both := []form{{inJSON, config}, {inProtobuf, config}}
	differences := 0
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return 0, err
		}
		for at, writer := range both {
			accessor, err := meta.Accessor(object)
			if err != nil {
				return 0, err
			}
			place := place{mapping, kind, fmt.Sprintf("%s-%d", accessor.GetName(), at)}
			created, err := place.create(ctx, writer, object)
			if err != nil {
				return 0, err
			}
			for _, reader := range both {
				stored, err := place.get(ctx, reader)
				if err != nil {
					return 0, err
				}
				untype(created)
				untype(stored)
				if !equality.Semantic.DeepEqual(created, stored) {
					differences++
					log.Printf("--- %s written in %s, read in %s\n%v\n%v", kind.Kind, writer.contentType, reader.contentType, created, stored)
				}
			}
		}
		differences += alike(ctx, both[0], mapping, kind, object)
	}
	return differences, nil
}

func (p place) create(ctx context.Context, form form, object runtime.Object) (runtime.Object, error) {
	object = object.DeepCopyObject()
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetName(p.name)
	client, err := form.client(p.kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	created, err := p.request(client.Post()).Body(object).Do(ctx).Get()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", p.kind.Kind, form.contentType, err)
	}
	return bare(created), nil
}

func (p place) get(ctx context.Context, form form) (runtime.Object, error) {
	client, err := form.client(p.kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	stored, err := p.request(client.Get()).Name(p.name).Do(ctx).Get()
	return bare(stored), err
}

// bare has no claims: decoders of the two forms differ in setting them.
func bare(object runtime.Object) runtime.Object {
	if object != nil {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return object
}

// alike compares the two objects that were written in different forms, but for what makes them two.
func alike(ctx context.Context, form form, mapping *meta.RESTMapping, kind schema.GroupVersionKind, object runtime.Object) int {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 1
	}
	both := [2]runtime.Object{}
	for at := range both {
		stored, err := place{mapping, kind, fmt.Sprintf("%s-%d", accessor.GetName(), at)}.get(ctx, form)
		if err != nil {
			log.Print(err)
			return 1
		}
		metadata, err := meta.Accessor(stored)
		if err != nil {
			return 1
		}
		metadata.SetName("")
		metadata.SetUID("")
		metadata.SetResourceVersion("")
		metadata.SetCreationTimestamp(metav1.Time{})
		entries := metadata.GetManagedFields()
		for at := range entries {
			entries[at].Time = nil
		}
		metadata.SetManagedFields(entries)
		forget(stored)
		both[at] = stored
	}
	if !equality.Semantic.DeepEqual(both[0], both[1]) {
		log.Printf("--- %s in the two forms\n%v\n%v", kind.Kind, both[0], both[1])
		return 1
	}
	return 0
}

// forget takes out what the server gives to every object anew.
func forget(object runtime.Object) {
	switch object := object.(type) {
	case *core.Service:
		object.Spec.ClusterIP, object.Spec.ClusterIPs = "", nil
	case *batch.Job:
		// A Job without labels has those of its template.
		object.Labels, object.Spec.Selector, object.Spec.Template.Labels = nil, nil, nil
	case *core.PersistentVolume:
		// The two may have been made in two seconds.
		object.Status.LastPhaseTransitionTime = nil
	}
}
