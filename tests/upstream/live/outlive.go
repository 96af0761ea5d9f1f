package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	crowd   = 10_000
	workers = 32
)

// outlive lets informers follow 10,000 objects. It says what it has done, a word a line, and does what it is told:
// "write" goes on however often the server is gone meanwhile, "end" compares.
func outlive(ctx context.Context, config *rest.Config) (int, error) {
	client, err := kubernetes.NewForConfig(binary(config))
	if err != nil {
		return 0, err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	each(crowd, func(at int) {
		object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: member(at)}, Data: map[string]string{"round": "0"}}
		insist(func() error { return create(ctx, client, object) })
	})
	followers, err := start(ctx, config)
	if err != nil {
		return 0, err
	}
	fmt.Println("following")
	orders := bufio.NewScanner(os.Stdin)
	for round := 1; orders.Scan(); round++ {
		switch orders.Text() {
		case "write":
			var done atomic.Int32
			each(crowd/5, func(at int) {
				if done.Add(1) == crowd/20 {
					fmt.Println("writing")
				}
				change(ctx, client, round, at)
			})
			fmt.Println("written")
		case "end":
			if list, err := maps.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) < crowd/2 {
				return 0, fmt.Errorf("too few objects: %w", err)
			}
			return compareAll(ctx, client, followers)
		}
	}
	return 0, fmt.Errorf("no end")
}

func member(at int) string {
	return fmt.Sprintf("m-%05d", at)
}

// each calls for all numbers below count, many at a time.
func each(count int, call func(at int)) {
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for at := worker; at < count; at += workers {
				call(at)
			}
		})
	}
	group.Wait()
}

var trying sync.Mutex

// insist calls until it succeeds: a server that is gone comes back. One tries, the others wait.
func insist(call func() error) {
	if call() == nil {
		return
	}
	trying.Lock()
	defer trying.Unlock()
	for call() != nil {
	}
}

// change makes one of the changes of a round; to make it twice is no harm.
func change(ctx context.Context, client kubernetes.Interface, round, at int) {
	maps := client.CoreV1().ConfigMaps(namespace)
	name := member((at*5 + round) % crowd)
	gone := func() error {
		err := maps.Delete(ctx, name, metav1.DeleteOptions{})
		if errors.IsNotFound(err) {
			return nil
		}
		return err
	}
	data := map[string]string{"round": fmt.Sprint(round)}
	again := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	switch at % 4 {
	case 0:
		insist(gone)
	case 1:
		insist(gone)
		insist(func() error { return create(ctx, client, again) })
	default:
		patch := fmt.Appendf(nil, `{"data":{"round":"%d"}}`, round)
		insist(func() error {
			_, err := maps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			if errors.IsNotFound(err) {
				return create(ctx, client, again)
			}
			return err
		})
	}
}

func create(ctx context.Context, client kubernetes.Interface, object *core.ConfigMap) error {
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
