package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// node is one Node and the Pods that are bound to it.
type node struct {
	client        kubernetes.Interface
	name, address string
	dir           string
	programs      map[string]string
	files         map[string][]string
	free          *freeAddresses

	mutex   sync.Mutex
	workers map[types.UID]*pod
}

// run registers the Node, keeps its Lease, and follows its Pods until ctx ends.
func (n *node) run(ctx context.Context) error {
	if err := n.register(ctx); err != nil {
		return err
	}
	go wait.UntilWithContext(ctx, n.renewLease, 10*time.Second)
	n.workers = map[types.UID]*pod{}
	if err := n.serve(ctx); err != nil {
		return err
	}
	watched := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", n.name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: watched,
		ObjectType:    &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { n.changed(ctx, object.(*v1.Pod)) },
			UpdateFunc: func(_, object any) { n.changed(ctx, object.(*v1.Pod)) },
			DeleteFunc: func(object any) {
				if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = unknown.Obj
				}
				n.gone(object.(*v1.Pod))
			},
		},
	})
	informer.RunWithContext(ctx)
	return nil
}

// changed hands the newest state of a Pod to the worker of this Pod.
func (n *node) changed(ctx context.Context, object *v1.Pod) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	worker := n.workers[object.UID]
	if worker == nil {
		if ended(object) && object.DeletionTimestamp == nil {
			return
		}
		worker = newPod(n, object)
		n.workers[object.UID] = worker
		go worker.run(ctx)
	}
	worker.update(object)
}

// gone ends what runs of a Pod that does not exist any more.
func (n *node) gone(object *v1.Pod) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if worker := n.workers[object.UID]; worker != nil {
		worker.cancel()
		delete(n.workers, object.UID)
	}
}

// program is the file that stands for an image, or nothing.
func (n *node) program(image string) string {
	return n.programs[nameOf(image)]
}

// nameOf is the last part of an image's name, without its version.
func nameOf(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

func ended(object *v1.Pod) bool {
	return object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed
}

func (n *node) register(ctx context.Context) error {
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
		v1.LabelHostname: n.name, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64",
	}}}
	_, err := n.client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return err
	}
	object, err = n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	object.Status.Capacity, object.Status.Allocatable = resources, resources
	object.Status.Addresses = []v1.NodeAddress{
		{Type: v1.NodeInternalIP, Address: n.address}, {Type: v1.NodeHostName, Address: n.name},
	}
	object.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	object.Status.NodeInfo = v1.NodeSystemInfo{KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64",
		ContainerRuntimeVersion: "processes://1"}
	object.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady",
		Message: "a stand-in for a kubelet is ready", LastHeartbeatTime: now, LastTransitionTime: now}}
	_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

func (n *node) renewLease(ctx context.Context) {
	leases := n.client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now := &metav1.MicroTime{Time: time.Now()}
	lease, err := leases.Get(ctx, n.name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: v1.NamespaceNodeLease},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: now}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else if err == nil {
		lease.Spec.RenewTime = now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		log.Printf("lease: %v", err)
	}
}

// freeAddresses gives out the addresses of a network.
type freeAddresses struct {
	mutex   sync.Mutex
	network *net.IPNet
	taken   map[string]bool
	last    uint32
}

func (f *freeAddresses) take() (string, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	ones, bits := f.network.Mask.Size()
	size := uint32(1) << (bits - ones)
	base := f.network.IP.To4()
	for range size {
		// The first addresses are of the Node and of the gateway.
		f.last = max((f.last+1)%(size-1), 10)
		number := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
		number += f.last
		address := net.IPv4(byte(number>>24), byte(number>>16), byte(number>>8), byte(number)).String()
		if !f.taken[address] {
			f.taken[address] = true
			return address, nil
		}
	}
	return "", fmt.Errorf("no address of %v is free", f.network)
}

func (f *freeAddresses) give(address string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.taken, address)
}

// resources are what each Node says that it has.
var resources = v1.ResourceList{
	v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"),
	v1.ResourcePods: resource.MustParse("500"), v1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
}
