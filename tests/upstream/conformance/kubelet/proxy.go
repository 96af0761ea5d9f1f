package main

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// proxy listens where Services are reached, and passes TCP connections on to their endpoints. A Service without a ready
// endpoint is not listened for, so that connections are refused.
type proxy struct {
	services  corelisters.ServiceLister
	slices    discoverylisters.EndpointSliceLister
	nodes     []string
	listeners map[string]*listener
}

// listener passes the connections to one address on to a random endpoint.
type listener struct {
	net.Listener
	mutex     sync.Mutex
	endpoints []string
}

func runProxy(ctx context.Context, client kubernetes.Interface, nodes []string) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &proxy{services: factory.Core().V1().Services().Lister(), slices: factory.Discovery().V1().EndpointSlices().Lister(),
		nodes: nodes, listeners: map[string]*listener{}}
	changes := make(chan struct{}, 1)
	change := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { change() }, UpdateFunc: func(any, any) { change() },
		DeleteFunc: func(any) { change() }}
	for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().Services().Informer(),
		factory.Discovery().V1().EndpointSlices().Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		if err := p.listen(); err != nil {
			log.Print(err)
			time.AfterFunc(time.Second, change)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
	}
}

// listen opens and closes listeners until they are those that Services ask for.
func (p *proxy) listen() (failed error) {
	wanted, err := p.wanted()
	if err != nil {
		return err
	}
	for address, one := range p.listeners {
		if wanted[address] == nil {
			one.Close()
			delete(p.listeners, address)
		}
	}
	for address, endpoints := range wanted {
		one := p.listeners[address]
		if one == nil {
			opened, err := net.Listen("tcp", address)
			if err != nil {
				failed = err
				continue
			}
			one = &listener{Listener: opened}
			p.listeners[address] = one
			go one.serve()
		}
		one.mutex.Lock()
		one.endpoints = endpoints
		one.mutex.Unlock()
	}
	return failed
}

// wanted are the endpoints by the address that leads to them.
func (p *proxy) wanted() (map[string][]string, error) {
	services, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	wanted := map[string][]string{}
	for _, service := range services {
		for _, port := range service.Spec.Ports {
			if port.Protocol != v1.ProtocolTCP {
				continue
			}
			endpoints, err := p.endpoints(service, port.Name)
			if err != nil {
				return nil, err
			}
			if len(endpoints) == 0 {
				continue
			}
			if service.Spec.ClusterIP != "" && service.Spec.ClusterIP != v1.ClusterIPNone {
				wanted[net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port)))] = endpoints
			}
			if port.NodePort != 0 {
				for _, node := range p.nodes {
					wanted[net.JoinHostPort(node, strconv.Itoa(int(port.NodePort)))] = endpoints
				}
			}
		}
	}
	return wanted, nil
}

func (p *proxy) endpoints(service *v1.Service, port string) (addresses []string, err error) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	slices, err := p.slices.EndpointSlices(service.Namespace).List(selector)
	for _, slice := range slices {
		for _, offered := range slice.Ports {
			if ptr.Deref(offered.Name, "") != port || offered.Port == nil || slice.AddressType != discoveryv1.AddressTypeIPv4 {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) {
					addresses = append(addresses, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*offered.Port))))
				}
			}
		}
	}
	return addresses, err
}

func (l *listener) serve() {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		l.mutex.Lock()
		endpoint := l.endpoints[rand.IntN(len(l.endpoints))]
		l.mutex.Unlock()
		go pass(from, endpoint)
	}
}

// pass copies both ways until either end closes.
func pass(from net.Conn, endpoint string) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", endpoint, 10*time.Second)
	if err != nil {
		// The client sees its connection reset, as one to an endpoint that is not there.
		from.(*net.TCPConn).SetLinger(0)
		return
	}
	defer to.Close()
	go func() {
		io.Copy(to, from)
		to.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(from, to)
}
