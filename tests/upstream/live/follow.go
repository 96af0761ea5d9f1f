package main

import (
	"context"
	"fmt"
	"log"
	"runtime"
	"sync"

	core "k8s.io/api/core/v1"
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
)

var configMaps = core.SchemeGroupVersion.WithResource("configmaps")

// follow lets informers of a typed client in both forms, of the metadata client and of the dynamic client follow writes.
func follow(ctx context.Context, config *rest.Config) (int, error) {
	binary := rest.CopyConfig(config)
	binary.ContentType = inProtobuf
	client, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return 0, err
	}
	followers, err := followers(config, binary)
	if err != nil {
		return 0, err
	}
	stop := make(chan struct{})
	defer close(stop)
	for name, follower := range followers {
		go follower.Run(stop)
		if !cache.WaitForCacheSync(stop, follower.HasSynced) {
			return 0, fmt.Errorf("%s: not in sync", name)
		}
	}
	if err := write(ctx, client); err != nil {
		return 0, err
	}
	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	// The last write is one that all must come to see.
	last := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "the-end"}}
	last, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, last, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	wanted := map[string]string{last.Name: last.ResourceVersion}
	for _, item := range list.Items {
		wanted[item.Name] = item.ResourceVersion
	}
	differences := 0
	for name, follower := range followers {
		for has := false; !has; runtime.Gosched() {
			_, has, _ = follower.GetStore().GetByKey(namespace + "/" + last.Name)
		}
		differences += compare(name, follower, wanted)
	}
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

func compare(name string, follower cache.SharedIndexInformer, wanted map[string]string) int {
	found := map[string]string{}
	for _, item := range follower.GetStore().List() {
		object := item.(metav1.Object)
		if object.GetNamespace() == namespace {
			found[object.GetName()] = object.GetResourceVersion()
		}
	}
	differences := 0
	for key, version := range wanted {
		if found[key] != version {
			differences++
			log.Printf("%s: %s at %q, not at %q", name, key, found[key], version)
		}
	}
	if len(found) != len(wanted) {
		differences++
		log.Printf("%s: %d objects, not %d", name, len(found), len(wanted))
	}
	return differences
}
