package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	namespace = "default"
	writers   = 8
	writes    = 150
	last      = "the-end"
)

var configMaps = core.SchemeGroupVersion.WithResource("configmaps")

// follow lets informers of a typed client in both forms, of the metadata client and of the dynamic client follow writes.
func follow(ctx context.Context, config *rest.Config) (int, error) {
	client, err := kubernetes.NewForConfig(binary(config))
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	followers, err := start(ctx, config)
	if err != nil {
		return 0, err
	}
	if err := write(ctx, client); err != nil {
		return 0, err
	}
	return compareAll(ctx, client, followers)
}

func binary(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = inProtobuf
	return config
}

// A follower is an informer, and a channel that is closed when it has seen the last object.
type follower struct {
	cache.SharedIndexInformer
	done chan struct{}
}

// start returns followers that hold what there is.
func start(ctx context.Context, config *rest.Config) (map[string]follower, error) {
	informers, err := followers(config, binary(config))
	if err != nil {
		return nil, err
	}
	started := map[string]follower{}
	for name, informer := range informers {
		follower := follower{informer, make(chan struct{})}
		seen := func(object any) {
			if object.(metav1.Object).GetName() == last {
				close(follower.done)
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen}); err != nil {
			return nil, err
		}
		go informer.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("%s: not in sync", name)
		}
		started[name] = follower
	}
	return started, nil
}

// compareAll writes a last object, which all must come to see, and compares what they hold with a list.
func compareAll(ctx context.Context, client kubernetes.Interface, followers map[string]follower) (int, error) {
	maps := client.CoreV1().ConfigMaps(namespace)
	end := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: last}}
	if _, err := maps.Create(ctx, end, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	wanted := map[string]*core.ConfigMap{}
	for at := range list.Items {
		wanted[list.Items[at].Name] = &list.Items[at]
	}
	if wanted[last] == nil {
		return 0, fmt.Errorf("the list does not have what was just created")
	}
	differences := 0
	for name, follower := range followers {
		<-follower.done
		differences += compare(name, follower, wanted)
	}
	log.Printf("%d objects, %d followers", len(wanted), len(followers))
	return differences, nil
}

func followers(config, binary *rest.Config) (map[string]cache.SharedIndexInformer, error) {
	inBinary, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, err
	}
	inText, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	onlyMetadata, err := metadata.NewForConfig(binary)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	typed := func(client kubernetes.Interface) cache.SharedIndexInformer {
		return informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
	}
	return map[string]cache.SharedIndexInformer{
		"protobuf": typed(inBinary),
		"JSON":     typed(inText),
		"metadata": metadatainformer.NewSharedInformerFactory(onlyMetadata, 0).ForResource(configMaps).Informer(),
		"dynamic":  dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0).ForResource(configMaps).Informer(),
	}, nil
}

// write creates, updates and deletes, by several clients at once.
func write(ctx context.Context, client kubernetes.Interface) error {
	var group sync.WaitGroup
	failures := make(chan error, writers)
	for writer := range writers {
		group.Add(1)
		go func() {
			defer group.Done()
			failures <- writeAs(ctx, client, writer)
		}()
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		if failure != nil {
			return failure
		}
	}
	return nil
}

func writeAs(ctx context.Context, client kubernetes.Interface, writer int) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	for at := range writes {
		object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d-%d", writer, at)}}
		stored, err := maps.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		stored.Data = map[string]string{"at": fmt.Sprint(at)}
		if stored, err = maps.Update(ctx, stored, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if at%3 == 0 {
			if err := maps.Delete(ctx, stored.Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func compare(name string, follower follower, wanted map[string]*core.ConfigMap) int {
	found := map[string]metav1.Object{}
	for _, item := range follower.GetStore().List() {
		object := item.(metav1.Object)
		if object.GetNamespace() == namespace {
			found[object.GetName()] = object
		}
	}
	differences := 0
	for key, want := range wanted {
		have, there := found[key]
		if !there || have.GetResourceVersion() != want.ResourceVersion || have.GetUID() != want.UID {
			differences++
			log.Printf("%s: %s is %v, not at %s", name, key, have, want.ResourceVersion)
		} else if typed, whole := have.(*core.ConfigMap); whole && !equality.Semantic.DeepEqual(typed, want) {
			differences++
			log.Printf("%s: %v is not %v", name, typed, want)
		}
	}
	if len(found) != len(wanted) {
		differences++
		log.Printf("%s: %d objects, not %d", name, len(found), len(wanted))
	}
	return differences
}
