package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// status is what a kubelet says of a Pod whose containers are as p.states tells. p.mutex is held.
func (p *pod) status() *v1.PodStatus {
	spec := &p.object.Spec
	status := &v1.PodStatus{
		ObservedGeneration: p.object.Generation,
		StartTime:          &p.started,
		HostIP:             p.node.address,
		HostIPs:            []v1.HostIP{{IP: p.node.address}},
		PodIP:              p.address,
		PodIPs:             []v1.PodIP{{IP: p.address}},
	}
	status.InitContainerStatuses = p.statusesOf(spec.InitContainers)
	status.ContainerStatuses = p.statusesOf(spec.Containers)
	for i := range spec.EphemeralContainers {
		container := v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		status.EphemeralContainerStatuses = append(status.EphemeralContainerStatuses, p.statusesOf([]v1.Container{container})...)
	}
	status.Phase = p.phase(status.ContainerStatuses)
	ready := status.Phase == v1.PodRunning && p.initialized
	for _, container := range status.ContainerStatuses {
		ready = ready && container.Ready
	}
	conditions := map[v1.PodConditionType]bool{v1.PodReadyToStartContainers: true, v1.PodInitialized: p.initialized,
		v1.ContainersReady: ready, v1.PodReady: ready}
	for _, gate := range spec.ReadinessGates {
		conditions[gate.ConditionType] = true
	}
	for _, name := range append([]v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady,
		v1.ContainersReady}, gates(spec)...) {
		status.Conditions = append(status.Conditions, p.condition(name, conditions[name], status.Phase))
	}
	return status
}

func gates(spec *v1.PodSpec) (names []v1.PodConditionType) {
	for _, gate := range spec.ReadinessGates {
		names = append(names, gate.ConditionType)
	}
	return names
}

// condition keeps the time since when it is so, if the server knows the condition so.
func (p *pod) condition(name v1.PodConditionType, holds bool, phase v1.PodPhase) v1.PodCondition {
	condition := v1.PodCondition{Type: name, Status: v1.ConditionFalse, ObservedGeneration: p.object.Generation,
		LastTransitionTime: metav1.Now().Rfc3339Copy()}
	if holds {
		condition.Status = v1.ConditionTrue
	} else if name == v1.PodInitialized {
		condition.Reason = "ContainersNotInitialized"
		condition.Message = fmt.Sprintf("containers with incomplete status: %v", p.incomplete())
	} else if phase == v1.PodSucceeded {
		condition.Reason = "PodCompleted"
	} else if phase == v1.PodFailed {
		condition.Reason = "PodFailed"
	} else {
		condition.Reason = "ContainersNotReady"
	}
	lists := [][]v1.PodCondition{p.object.Status.Conditions}
	if p.told != nil {
		lists = append(lists, p.told.Conditions)
	}
	for _, list := range lists {
		for _, before := range list {
			if before.Type == name && before.Status == condition.Status {
				condition.LastTransitionTime = before.LastTransitionTime
			}
		}
	}
	return condition
}

// incomplete are the containers that come first and have not succeeded.
func (p *pod) incomplete() (names []string) {
	for _, container := range p.object.Spec.InitContainers {
		if known := p.states[container.Name]; known == nil || !known.Ready {
			names = append(names, container.Name)
		}
	}
	return names
}

func (p *pod) statusesOf(containers []v1.Container) (statuses []v1.ContainerStatus) {
	waiting := "ContainerCreating"
	if len(p.object.Spec.InitContainers) > 0 {
		waiting = "PodInitializing"
	}
	for i := range containers {
		status := v1.ContainerStatus{Name: containers[i].Name, Image: containers[i].Image, Started: ptr.To(false),
			State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: waiting}}}
		if known := p.states[containers[i].Name]; known != nil {
			status = *known.DeepCopy()
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func (p *pod) phase(statuses []v1.ContainerStatus) v1.PodPhase {
	if p.failed {
		return v1.PodFailed
	}
	if !p.initialized {
		return v1.PodPending
	}
	waiting, over, failed := 0, 0, 0
	for _, status := range statuses {
		switch {
		case status.State.Waiting != nil && status.LastTerminationState.Terminated == nil:
			waiting++
		case status.State.Terminated != nil && !restarts(p.object.Spec.RestartPolicy, status.State.Terminated.ExitCode):
			over++
			if status.State.Terminated.ExitCode != 0 {
				failed++
			}
		}
	}
	switch {
	case waiting > 0:
		return v1.PodPending
	case over < len(statuses):
		return v1.PodRunning
	case failed > 0:
		return v1.PodFailed
	}
	return v1.PodSucceeded
}

func restarts(policy v1.RestartPolicy, code int32) bool {
	return policy == v1.RestartPolicyAlways || policy == v1.RestartPolicyOnFailure && code != 0
}
