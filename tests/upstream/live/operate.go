package main

import (
	"context"
	"fmt"
	"log"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coreconfig "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	controllers "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	mirrored  = 50
	finalizer = "example.com/mirror"
	index     = "data.text"
)

// mirror keeps a Secret with the text of every ConfigMap, and counts in the ConfigMap's annotations by server-side
// apply.
type mirror struct {
	client.Client
}

// Reconcile makes one Secret say what its ConfigMap says.
func (m *mirror) Reconcile(ctx context.Context, request controllers.Request) (controllers.Result, error) {
	source := &core.ConfigMap{}
	if err := m.Get(ctx, request.NamespacedName, source); err != nil {
		return controllers.Result{}, client.IgnoreNotFound(err)
	}
	if !source.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(source, finalizer) {
			return controllers.Result{}, client.IgnoreNotFound(m.Update(ctx, source))
		}
		return controllers.Result{}, nil
	}
	if controllerutil.AddFinalizer(source, finalizer) {
		return controllers.Result{}, m.Update(ctx, source)
	}
	copied := &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, m.Client, copied, func() error {
		copied.Data = map[string][]byte{"text": []byte(source.Data["text"])}
		return controllerutil.SetControllerReference(source, copied, m.Scheme())
	})
	if err != nil {
		return controllers.Result{}, err
	}
	note := coreconfig.ConfigMap(source.Name, source.Namespace).WithAnnotations(map[string]string{"mirrored": source.Data["text"]})
	return controllers.Result{}, m.Apply(ctx, note, client.FieldOwner("mirror"), client.ForceOwnership)
}

// operate runs the controller behind an election, and lets it follow creates, updates and deletions.
func operate(ctx context.Context, config *rest.Config) (int, error) {
	controllers.SetLogger(klog.Background())
	manager, err := controllers.NewManager(config, controllers.Options{
		Scheme:                        scheme.Scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "mirror",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return 0, err
	}
	text := func(object client.Object) []string { return []string{object.(*core.ConfigMap).Data["text"]} }
	if err := manager.GetFieldIndexer().IndexField(ctx, &core.ConfigMap{}, index, text); err != nil {
		return 0, err
	}
	err = controllers.NewControllerManagedBy(manager).For(&core.ConfigMap{}).Owns(&core.Secret{}).
		Complete(&mirror{manager.GetClient()})
	if err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return 0, err
	}
	differences, err := drive(ctx, direct, manager.GetClient())
	stop()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	return differences, err
}

// drive uses a client of its own, which reads from the server, and looks at the cache of the manager.
func drive(ctx context.Context, direct client.WithWatch, cached client.Client) (int, error) {
	names := func(at int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("mirrored-%02d", at)}
	}
	for at := range mirrored {
		object := &core.ConfigMap{ObjectMeta: names(at), Data: map[string]string{"text": "first"}}
		if err := direct.Create(ctx, object); err != nil {
			return 0, err
		}
	}
	if err := await(ctx, direct, &core.SecretList{}, mirrored, saying("first")); err != nil {
		return 0, err
	}
	for at := range mirrored {
		object := &core.ConfigMap{ObjectMeta: names(at)}
		if err := direct.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return 0, err
		}
		before := object.DeepCopy()
		object.Data["text"] = "second"
		if err := direct.Patch(ctx, object, client.MergeFrom(before)); err != nil {
			return 0, err
		}
	}
	if err := await(ctx, direct, &core.SecretList{}, mirrored, saying("second")); err != nil {
		return 0, err
	}
	noted := func(object client.Object) bool { return object.GetAnnotations()["mirrored"] == "second" }
	if err := await(ctx, direct, &core.ConfigMapList{}, mirrored, noted); err != nil {
		return 0, err
	}
	differences := 0
	found := &core.ConfigMapList{}
	if err := cached.List(ctx, found, client.MatchingFields{index: "first"}); err != nil || len(found.Items) > 0 {
		differences++
		log.Printf("the cache has %d objects of old: %v", len(found.Items), err)
	}
	// One that somebody else deletes comes back.
	lost := &core.Secret{ObjectMeta: names(0)}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(lost), lost); err != nil {
		return 0, err
	}
	if err := direct.Delete(ctx, lost, client.Preconditions{UID: &lost.UID}); err != nil {
		return 0, err
	}
	another := func(object client.Object) bool { return object.GetUID() != lost.UID }
	if err := await(ctx, direct, &core.SecretList{}, mirrored, another); err != nil {
		return 0, err
	}
	// The finalizer goes by the controller, the Secrets by the garbage collector.
	if err := direct.DeleteAllOf(ctx, &core.ConfigMap{}, client.InNamespace(namespace)); err != nil {
		return 0, err
	}
	if err := await(ctx, direct, &core.ConfigMapList{}, 0, nil); err != nil {
		return 0, err
	}
	if err := await(ctx, direct, &core.SecretList{}, 0, nil); err != nil {
		return 0, err
	}
	stale := &core.ConfigMap{ObjectMeta: names(0)}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(stale), stale); !errors.IsNotFound(err) {
		differences++
		log.Printf("%s is still there: %v", stale.Name, err)
	}
	return differences, nil
}

func saying(text string) func(client.Object) bool {
	return func(object client.Object) bool { return string(object.(*core.Secret).Data["text"]) == text }
}

// await watches until there are so many objects of a kind and all are as they should be.
func await(ctx context.Context, direct client.WithWatch, list client.ObjectList, count int, fine func(client.Object) bool) error {
	watching, err := direct.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{AllowWatchBookmarks: true},
	})
	if err != nil {
		return err
	}
	defer watching.Stop()
	there := map[string]bool{}
	whole := false
	for event := range watching.ResultChan() {
		switch event.Type {
		case watch.Error:
			return errors.FromObject(event.Object)
		case watch.Bookmark:
			// The first one ends the state.
			whole = true
		case watch.Deleted:
			delete(there, event.Object.(client.Object).GetName())
		default:
			object := event.Object.(client.Object)
			there[object.GetName()] = fine == nil || fine(object)
		}
		done := 0
		for _, is := range there {
			if is {
				done++
			}
		}
		if whole && len(there) == count && done == count {
			return nil
		}
	}
	return fmt.Errorf("the watch ended")
}
