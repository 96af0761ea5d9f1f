package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// pod runs one Pod: its containers have a goroutine each, and run tells the server what has become of them.
type pod struct {
	node    *node
	cancel  context.CancelFunc
	stopped <-chan struct{}
	wake    chan struct{}
	started metav1.Time
	address string
	// Tokens of the Pod's service account, by what was asked for.
	tokens sync.Map

	mutex sync.Mutex
	// The newest state that the server has sent.
	object *v1.Pod
	// States of containers, those that come first too.
	states map[string]*v1.ContainerStatus
	// The last processes of containers.
	processes map[string]*process
	// Whether the containers that come first have ended, and whether one of them has failed for good.
	initialized, failed bool
	// How many ephemeral containers have begun.
	ephemeral int
	told      *v1.PodStatus
}

func newPod(n *node, object *v1.Pod) *pod {
	p := &pod{node: n, object: object, wake: make(chan struct{}, 1), started: metav1.Now(),
		states: map[string]*v1.ContainerStatus{}, processes: map[string]*process{}}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.stopped = cancel, ctx.Done()
	return p
}

func (p *pod) update(object *v1.Pod) {
	p.mutex.Lock()
	p.object = object
	p.mutex.Unlock()
	p.wakeUp()
}

func (p *pod) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pod) current() *v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.object
}

// run starts the Pod, tells every change, and ends it once it is to be deleted.
func (p *pod) run(outer context.Context) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	var all sync.WaitGroup
	if p.current().DeletionTimestamp == nil {
		all.Go(func() { p.runContainers(ctx, &all) })
	}
	for {
		select {
		case <-outer.Done():
			all.Wait()
			return
		case <-p.stopped:
			cancel()
			all.Wait()
			p.clean()
			return
		case <-p.wake:
		}
		if object := p.current(); object.DeletionTimestamp != nil {
			cancel()
			all.Wait()
			// Who has put a finalizer on the Pod waits for what has become of it.
			p.tell(outer)
			p.delete(outer, object)
			continue
		}
		p.runEphemeral(ctx, &all)
		p.tell(outer)
	}
}

// runEphemeral starts the ephemeral containers that have come, once the others run. They are never started again.
func (p *pod) runEphemeral(ctx context.Context, all *sync.WaitGroup) {
	object := p.current()
	p.mutex.Lock()
	begun := p.ephemeral
	if p.initialized {
		p.ephemeral = len(object.Spec.EphemeralContainers)
	}
	now := p.ephemeral
	p.mutex.Unlock()
	for i := begun; i < now; i++ {
		container := v1.Container(object.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		all.Go(func() { p.runContainer(ctx, object, &container, v1.RestartPolicyNever) })
	}
}

// delete takes the Pod away from the server, as a kubelet does once nothing of the Pod runs any more.
func (p *pod) delete(ctx context.Context, object *v1.Pod) {
	err := p.node.client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(object.UID))})
	if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
		log.Printf("delete %s/%s: %v", object.Namespace, object.Name, err)
		time.AfterFunc(time.Second, p.wakeUp)
	}
}

// clean removes what the Pod had on this machine.
func (p *pod) clean() {
	removeNetwork(p.object.UID)
	if p.address != "" && p.address != p.node.address {
		p.node.free.give(p.address)
	}
	os.RemoveAll(p.dir())
}

func (p *pod) dir() string {
	return filepath.Join(p.node.dir, string(p.object.UID))
}

// runContainers prepares the Pod, runs the containers that come first one after the other, then the others.
func (p *pod) runContainers(ctx context.Context, all *sync.WaitGroup) {
	object := p.current()
	for !p.prepare(ctx, object) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
	if p.runs(object) {
		p.followVolumes(ctx, object)
	}
	defer p.wakeUp()
	for i := range object.Spec.InitContainers {
		container := &object.Spec.InitContainers[i]
		if ptr.Deref(container.RestartPolicy, "") == v1.ContainerRestartPolicyAlways {
			all.Go(func() { p.runContainer(ctx, object, container, v1.RestartPolicyAlways) })
		} else if !p.runContainer(ctx, object, container, restartsFirst(object.Spec.RestartPolicy)) {
			p.mutex.Lock()
			p.failed = ctx.Err() == nil
			p.mutex.Unlock()
			return
		}
	}
	p.mutex.Lock()
	p.initialized = true
	p.mutex.Unlock()
	for i := range object.Spec.Containers {
		container := &object.Spec.Containers[i]
		all.Go(func() { p.runContainer(ctx, object, container, object.Spec.RestartPolicy) })
	}
}

// restartsFirst is how containers that come first are started again: in a Pod that always does so, until they succeed.
func restartsFirst(policy v1.RestartPolicy) v1.RestartPolicy {
	if policy == v1.RestartPolicyAlways {
		return v1.RestartPolicyOnFailure
	}
	return policy
}

// prepare makes the network and the volumes. A Pod of which nothing runs needs neither, just an address.
func (p *pod) prepare(ctx context.Context, object *v1.Pod) bool {
	if err := p.makeNetwork(object); err != nil {
		log.Printf("network of %s/%s: %v", object.Namespace, object.Name, err)
		return false
	}
	if !p.runs(object) {
		return true
	}
	if err := p.makeVolumes(ctx, object); err != nil {
		log.Printf("volumes of %s/%s: %v", object.Namespace, object.Name, err)
		return false
	}
	return true
}

func (p *pod) makeNetwork(object *v1.Pod) (err error) {
	if object.Spec.HostNetwork {
		p.address = p.node.address
		return nil
	}
	if p.address == "" {
		if p.address, err = p.node.free.take(); err != nil {
			return err
		}
	}
	if !p.runs(object) {
		return nil
	}
	return addNetwork(object.UID, p.address)
}

// runs tells whether a container of the Pod is more than said to run.
func (p *pod) runs(object *v1.Pod) bool {
	for _, container := range append(object.Spec.InitContainers, object.Spec.Containers...) {
		if p.node.program(container.Image) != "" {
			return true
		}
	}
	return false
}

// set notes what has become of a container.
func (p *pod) set(container *v1.Container, change func(*v1.ContainerStatus)) {
	p.mutex.Lock()
	status := p.states[container.Name]
	if status == nil {
		status = &v1.ContainerStatus{Name: container.Name, Image: container.Image}
		p.states[container.Name] = status
	}
	change(status)
	p.mutex.Unlock()
	p.wakeUp()
}

// tell patches the Pod's status if it is another than was told last.
func (p *pod) tell(ctx context.Context) {
	p.mutex.Lock()
	object := p.object
	status := p.status()
	p.mutex.Unlock()
	if p.address == "" || reflect.DeepEqual(status, p.told) {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}, "status": status})
	if err == nil {
		_, err = p.node.client.CoreV1().Pods(object.Namespace).Patch(ctx, object.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
	}
	if err == nil {
		p.told = status
	} else if !errors.IsNotFound(err) && !errors.IsConflict(err) {
		log.Printf("status of %s/%s: %v", object.Namespace, object.Name, err)
		time.AfterFunc(time.Second, p.wakeUp)
	}
}
