package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe asks a container again and again whether it is ready, until ctx ends.
func (p *pod) probe(ctx context.Context, container *v1.Container) {
	probe := container.ReadinessProbe
	client := &http.Client{
		Timeout:   time.Duration(max(probe.TimeoutSeconds, 1)) * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	var ready bool
	var agreeing int32
	for wait := time.Duration(probe.InitialDelaySeconds) * time.Second; ; wait = time.Duration(max(probe.PeriodSeconds,
		1)) * time.Second {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if p.ask(ctx, client, container) == ready {
			agreeing = 0
			continue
		}
		agreeing++
		enough := max(probe.SuccessThreshold, 1)
		if ready {
			enough = max(probe.FailureThreshold, 1)
		}
		if agreeing >= enough && ctx.Err() == nil {
			ready, agreeing = !ready, 0
			p.set(container, func(status *v1.ContainerStatus) { status.Ready = ready && status.State.Running != nil })
		}
	}
}

func (p *pod) ask(ctx context.Context, client *http.Client, container *v1.Container) bool {
	handler := container.ReadinessProbe.ProbeHandler
	switch {
	case handler.HTTPGet != nil:
		host := handler.HTTPGet.Host
		if host == "" {
			host = p.address
		}
		url := fmt.Sprintf("%s://%s%s", strings.ToLower(string(handler.HTTPGet.Scheme)),
			net.JoinHostPort(host, portOf(container, handler.HTTPGet.Port)), handler.HTTPGet.Path)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		answer, err := client.Do(request)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode >= 200 && answer.StatusCode < 400
	case handler.TCPSocket != nil:
		connection, err := net.DialTimeout("tcp", net.JoinHostPort(p.address, portOf(container, handler.TCPSocket.Port)),
			client.Timeout)
		if err != nil {
			return false
		}
		connection.Close()
		return true
	}
	// Commands and gRPC are not asked.
	return true
}

func portOf(container *v1.Container, port intstr.IntOrString) string {
	for _, named := range container.Ports {
		if port.Type == intstr.String && named.Name == port.StrVal {
			return fmt.Sprint(named.ContainerPort)
		}
	}
	return port.String()
}
