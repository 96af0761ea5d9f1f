// Replicas drives two rowplane servers on one database with client-go: who is alive, how they encode, and a migration of
// stored objects.
//
//	replicas -kubeconfig FILE -second FILE
//
// What is written at the first server is read and watched at the second one, in JSON and in protobuf.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"slices"

	internal "k8s.io/api/apiserverinternal/v1alpha1"
	core "k8s.io/api/core/v1"
	migration "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	identity = "apiserver.kubernetes.io/identity"
	things   = "example.com.things"
)

func main() {
	log.SetFlags(0)
	first := flag.String("kubeconfig", "", "of the first server")
	second := flag.String("second", "", "of the second server")
	flag.Parse()
	ctx := context.Background()
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		a, b := client(*first, form), client(*second, form)
		servers := leases(ctx, a, b)
		versions(ctx, a, b, servers)
		follow(ctx, a, b)
		migrate(ctx, a, b)
		log.Printf("%s: as it should be, with %d servers", form, len(servers))
	}
}

func client(path, form string) kubernetes.Interface {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(err)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.ContentType = 1000, 1000, form
	return kubernetes.NewForConfigOrDie(config)
}

// leases returns the servers that both say are there.
func leases(ctx context.Context, a, b kubernetes.Interface) []string {
	names := func(client kubernetes.Interface) []string {
		options := metav1.ListOptions{LabelSelector: identity}
		list, err := client.CoordinationV1().Leases("kube-system").List(ctx, options)
		must(err)
		found := []string{}
		for _, lease := range list.Items {
			check(lease.Labels[identity] == "kube-apiserver", "label of %s: %v", lease.Name, lease.Labels)
			check(lease.Labels[core.LabelHostname] != "", "no hostname: %v", lease.Labels)
			check(lease.Spec.RenewTime != nil && *lease.Spec.LeaseDurationSeconds > 0, "spec: %v", lease.Spec)
			found = append(found, lease.Name)
		}
		return found
	}
	servers := names(a)
	check(len(servers) == 2 && slices.Equal(servers, names(b)), "leases: %v and %v", servers, names(b))
	return servers
}

// versions checks that every StorageVersion has an entry of each server, and that all agree.
func versions(ctx context.Context, a, b kubernetes.Interface, servers []string) {
	list, err := a.InternalV1alpha1().StorageVersions().List(ctx, metav1.ListOptions{})
	must(err)
	check(len(list.Items) > 50, "%d StorageVersions", len(list.Items))
	for _, version := range list.Items {
		entries := []string{}
		for _, entry := range version.Status.StorageVersions {
			entries = append(entries, entry.APIServerID)
			check(slices.Contains(entry.DecodableVersions, entry.EncodingVersion), "%v", entry)
		}
		slices.Sort(entries)
		check(slices.Equal(entries, servers), "%s has entries of %v", version.Name, entries)
		common := version.Status.CommonEncodingVersion
		check(common != nil && *common == version.Status.StorageVersions[0].EncodingVersion, "%s: %v", version.Name, common)
		condition := version.Status.Conditions[0]
		check(condition.Type == internal.AllEncodingVersionsEqual && condition.Status == internal.ConditionTrue, "%v", condition)
		same, err := b.InternalV1alpha1().StorageVersions().Get(ctx, version.Name, metav1.GetOptions{})
		must(err)
		check(same.ResourceVersion == version.ResourceVersion, "%s differs at the other server", version.Name)
	}
}

// follow watches at the one server what is done at the other.
func follow(ctx context.Context, a, b kubernetes.Interface) {
	list, err := b.InternalV1alpha1().StorageVersions().List(ctx, metav1.ListOptions{})
	must(err)
	options := metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=" + things}
	events, err := b.InternalV1alpha1().StorageVersions().Watch(ctx, options)
	must(err)
	defer events.Stop()
	client := a.InternalV1alpha1().StorageVersions()
	made, err := client.Create(ctx, &internal.StorageVersion{ObjectMeta: metav1.ObjectMeta{Name: things}}, metav1.CreateOptions{})
	must(err)
	expect(events, watch.Added)
	// Nobody's lease: the collector takes the entry, and the object with it.
	common := "example.com/v1"
	made.Status = internal.StorageVersionStatus{
		CommonEncodingVersion: &common,
		StorageVersions: []internal.ServerStorageVersion{{
			APIServerID: "nobody", EncodingVersion: common, DecodableVersions: []string{common},
		}},
	}
	_, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	must(err)
	expect(events, watch.Modified)
	expect(events, watch.Deleted)
	_, err = b.InternalV1alpha1().StorageVersions().Get(ctx, things, metav1.GetOptions{})
	check(errors.IsNotFound(err), "after its deletion: %v", err)
}

func expect(events watch.Interface, kind watch.EventType) {
	event, more := <-events.ResultChan()
	check(more && event.Type == kind, "%v instead of %s", event, kind)
	accessor, err := meta.Accessor(event.Object)
	must(err)
	check(accessor.GetName() == things, "an event of %s", accessor.GetName())
}

// migrate asks one server for a migration and waits at the other one until it has succeeded.
func migrate(ctx context.Context, a, b kubernetes.Interface) {
	wanted := &migration.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "again-"},
		Spec:       migration.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Resource: "configmaps"}},
	}
	made, err := a.StoragemigrationV1().StorageVersionMigrations().Create(ctx, wanted, metav1.CreateOptions{})
	must(err)
	options := metav1.ListOptions{ResourceVersion: made.ResourceVersion, FieldSelector: "metadata.name=" + made.Name}
	events, err := b.StoragemigrationV1().StorageVersionMigrations().Watch(ctx, options)
	must(err)
	defer events.Stop()
	for event := range events.ResultChan() {
		found := event.Object.(*migration.StorageVersionMigration)
		check(!meta.IsStatusConditionTrue(found.Status.Conditions, string(migration.MigrationFailed)), "%v", found.Status)
		if meta.IsStatusConditionTrue(found.Status.Conditions, string(migration.MigrationSucceeded)) {
			check(found.Status.ResourceVersion != "", "no checkpoint: %v", found.Status)
			return
		}
	}
	check(false, "the watch of a migration has ended")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(holds bool, format string, arguments ...any) {
	if !holds {
		log.Fatal(fmt.Sprintf(format, arguments...))
	}
}
