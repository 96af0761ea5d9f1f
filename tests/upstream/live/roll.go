package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const counter = "live-counter"

// roll writes, and follows a counter, by HTTP/1.1 and by HTTP/2, until it is told to end. It says "following" when it has
// begun. Its transports count requests that fail and answers of 5xx, which client-go itself would hide by trying again.
func roll(ctx context.Context, config *rest.Config) (int, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var differences atomic.Int32
	first, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	maps := first.CoreV1().ConfigMaps(namespace)
	object := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: counter}, Data: map[string]string{"value": "0"}}
	object, err = maps.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	over := make(chan struct{})
	var writing, following sync.WaitGroup
	for _, protocol := range []string{"http/1.1", "h2"} {
		config := rest.CopyConfig(binary(config))
		config.TLSClientConfig.NextProtos = []string{protocol}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return strict{next, protocol, &differences}
		})
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return 0, err
		}
		writing.Go(func() {
			for at := 0; !closed(over); at++ {
				if err := cycle(ctx, client, fmt.Sprintf("live-%s-%d", protocol[:2], at)); err != nil {
					differences.Add(1)
					log.Printf("%s: %v", protocol, err)
				}
			}
		})
		done, err := sequence(ctx, client, protocol, &differences)
		if err != nil {
			return 0, err
		}
		following.Go(func() { <-done })
	}
	fmt.Println("following")
	writing.Go(func() {
		for at := 1; ; at++ {
			ending := closed(over)
			object.Data["value"] = strconv.Itoa(at)
			if ending {
				object.Data["value"] = "end"
			}
			changed, err := maps.Update(ctx, object, metav1.UpdateOptions{})
			if err != nil {
				log.Fatalf("the counter at %d: %v", at, err)
			}
			object = changed
			if ending {
				return
			}
		}
	})
	if !bufio.NewScanner(os.Stdin).Scan() {
		return 0, fmt.Errorf("no end")
	}
	close(over)
	writing.Wait()
	following.Wait()
	return int(differences.Load()), nil
}

func closed(channel chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// strict counts what no client should see.
type strict struct {
	next        http.RoundTripper
	protocol    string
	differences *atomic.Int32
}

func (s strict) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	switch {
	case request.Context().Err() != nil:
	case err != nil:
		s.differences.Add(1)
		log.Printf("%s: %s %s: %v", s.protocol, request.Method, request.URL, err)
	case response.StatusCode >= 500:
		s.differences.Add(1)
		log.Printf("%s: %s %s: %s", s.protocol, request.Method, request.URL, response.Status)
	case response.ProtoMajor == 2 != (s.protocol == "h2"):
		s.differences.Add(1)
		log.Printf("%s is spoken instead of %s", response.Proto, s.protocol)
	}
	return response, err
}

// cycle writes an object, reads it, and deletes it.
func cycle(ctx context.Context, client kubernetes.Interface, name string) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	object, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if object, err = maps.Get(ctx, name, metav1.GetOptions{}); err != nil {
		return err
	}
	object.Data = map[string]string{"changed": "yes"}
	if _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return maps.Delete(ctx, name, metav1.DeleteOptions{})
}

// sequence lets an informer follow the counter. A number that it does not see is a difference: it has listed anew after it had
// missed an event. The channel is closed at the end.
func sequence(ctx context.Context, client kubernetes.Interface, protocol string, differences *atomic.Int32) (chan struct{}, error) {
	only := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = "metadata.name=" + counter
	})
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace), only)
	informer := factory.Core().V1().ConfigMaps().Informer()
	done, last := make(chan struct{}), -1
	see := func(object any) {
		value := object.(*core.ConfigMap).Data["value"]
		if value == "end" {
			close(done)
			return
		}
		now, _ := strconv.Atoi(value)
		if last >= 0 && now != last+1 {
			differences.Add(1)
			log.Printf("%s: %d comes after %d", protocol, now, last)
		}
		last = now
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("%s: not in sync", protocol)
	}
	return done, nil
}
