package main

import (
	"fmt"
	"math/rand"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var amounts = []string{"0", "1", "2", "100m", "250m", "1500m", "0.5", "64Mi", "128Mi", "1Gi", "1G", "1500M", "3", "10k", "1e3", "0.1", "1n"}
var names = []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "requests.example.com/odd", "storage"}

func quantity(r *rand.Rand) resource.Quantity {
	return resource.MustParse(amounts[r.Intn(len(amounts))])
}

// some is a list of up to this many amounts.
func some(r *rand.Rand, most int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for range r.Intn(most + 1) {
		list[names[r.Intn(len(names)-1)]] = quantity(r)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func requirements(r *rand.Rand) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: some(r, 4), Limits: some(r, 4)}
}

func one(r *rand.Rand, in int) bool { return r.Intn(in) == 0 }

func container(r *rand.Rand, name string) corev1.Container {
	return corev1.Container{Name: name, Image: "i", Resources: requirements(r)}
}

func pod(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}}
	spec, status := &pod.Spec, &pod.Status
	for i := range 1 + r.Intn(3) {
		spec.Containers = append(spec.Containers, container(r, fmt.Sprint("c", i)))
	}
	always := corev1.ContainerRestartPolicyAlways
	for i := range r.Intn(4) {
		init := container(r, fmt.Sprint("i", i))
		if one(r, 2) {
			init.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, init)
	}
	if one(r, 4) {
		spec.Overhead = some(r, 3)
	}
	if one(r, 4) {
		of := requirements(r)
		for _, list := range []corev1.ResourceList{of.Requests, of.Limits} {
			delete(list, "ephemeral-storage")
			delete(list, "example.com/gpu")
			delete(list, "requests.example.com/odd")
		}
		spec.Resources = &of
	}
	if one(r, 4) {
		seconds := int64(r.Intn(3) - 1)
		spec.ActiveDeadlineSeconds = &seconds
	}
	if one(r, 2) {
		spec.PriorityClassName = []string{"a", "b", "c"}[r.Intn(3)]
	}
	if one(r, 4) {
		spec.Affinity = affinity(r)
	}
	if one(r, 5) {
		status.Phase = []corev1.PodPhase{"Pending", "Running", "Succeeded", "Failed"}[r.Intn(4)]
	}
	if one(r, 6) {
		status.QOSClass = []corev1.PodQOSClass{"BestEffort", "Burstable", "Guaranteed"}[r.Intn(3)]
	}
	if one(r, 3) {
		resized(r, pod)
	}
	return pod
}

// resized reports what containers have.
func resized(r *rand.Rand, pod *corev1.Pod) {
	report := func(container corev1.Container) corev1.ContainerStatus {
		status := corev1.ContainerStatus{Name: container.Name}
		if !one(r, 4) {
			of := requirements(r)
			status.Resources = &of
			status.AllocatedResources = some(r, 3)
		}
		return status
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, report(container))
	}
	for _, container := range pod.Spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, report(container))
	}
	if one(r, 2) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: "PodResizePending", Status: "True", Reason: []string{"Infeasible", "Deferred"}[r.Intn(2)]}}
	}
}

func affinity(r *rand.Rand) *corev1.Affinity {
	term := corev1.PodAffinityTerm{TopologyKey: "k"}
	if one(r, 3) {
		term.Namespaces = []string{"x"}
	}
	if one(r, 3) {
		term.NamespaceSelector = &metav1.LabelSelector{}
	}
	required, preferred := []corev1.PodAffinityTerm{term}, []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}
	switch r.Intn(4) {
	case 0:
		return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	case 1:
		return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
	case 2:
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	default:
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
	}
}

func service(r *rand.Rand) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n"}}
	service.Spec.Type = []corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName", ""}[r.Intn(5)]
	for i := range r.Intn(4) {
		port := corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(80 + i)}
		if one(r, 2) {
			port.NodePort = int32(30000 + i)
		}
		service.Spec.Ports = append(service.Spec.Ports, port)
	}
	if one(r, 2) {
		allocates := one(r, 2)
		service.Spec.AllocateLoadBalancerNodePorts = &allocates
	}
	return service
}

func class(r *rand.Rand) *string {
	if one(r, 2) {
		return nil
	}
	name := []string{"", "a", "b", "c"}[r.Intn(4)]
	return &name
}

func claim(r *rand.Rand) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	if !one(r, 8) {
		claim.Spec.Resources.Requests = corev1.ResourceList{"storage": quantity(r)}
	}
	claim.Spec.StorageClassName, claim.Spec.VolumeAttributesClassName = class(r), class(r)
	if one(r, 4) {
		claim.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": []string{"", "old"}[r.Intn(2)]}
	}
	if one(r, 3) {
		claim.Status.AllocatedResources = corev1.ResourceList{"storage": quantity(r)}
	}
	claim.Status.CurrentVolumeAttributesClassName = class(r)
	if one(r, 3) {
		claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: []string{"", "a", "b"}[r.Intn(3)]}
	}
	return claim
}

func resourceClaim(r *rand.Rand) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n"}}
	mode := func() (resourceapi.DeviceAllocationMode, int64) {
		return []resourceapi.DeviceAllocationMode{"ExactCount", "All", "Other"}[r.Intn(3)], int64(r.Intn(5))
	}
	for i := range r.Intn(4) {
		request := resourceapi.DeviceRequest{Name: fmt.Sprint("r", i)}
		if one(r, 2) {
			mode, count := mode()
			request.Exactly = &resourceapi.ExactDeviceRequest{DeviceClassName: []string{"a", "b"}[r.Intn(2)], AllocationMode: mode, Count: count}
		} else {
			for j := range 1 + r.Intn(3) {
				mode, count := mode()
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: fmt.Sprint("s", j), DeviceClassName: []string{"a", "b"}[r.Intn(2)], AllocationMode: mode, Count: count})
			}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	return claim
}

func limitRange(r *rand.Rand) *corev1.LimitRange {
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "n"}}
	for range 1 + r.Intn(3) {
		item := corev1.LimitRangeItem{Type: []corev1.LimitType{"Container", "Pod", "PersistentVolumeClaim"}[r.Intn(3)]}
		bound := func() corev1.ResourceList {
			if one(r, 2) {
				return nil
			}
			list := some(r, 2)
			if item.Type == "PersistentVolumeClaim" && list != nil {
				list = corev1.ResourceList{"storage": quantity(r)}
			}
			return list
		}
		item.Min, item.Max, item.MaxLimitRequestRatio = bound(), bound(), bound()
		if item.Type == "Container" {
			item.Default, item.DefaultRequest = bound(), bound()
		}
		limits.Spec.Limits = append(limits.Spec.Limits, item)
	}
	return limits
}

func account(r *rand.Rand) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}}
	if one(r, 3) {
		mounts := one(r, 2)
		account.AutomountServiceAccountToken = &mounts
	}
	if one(r, 2) {
		account.Annotations = map[string]string{"kubernetes.io/enforce-mountable-secrets": []string{"true", "1", "T", "false", "yes", ""}[r.Intn(6)]}
	}
	for _, name := range []string{"s", "t"} {
		if one(r, 2) {
			account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: name})
		}
		if one(r, 3) {
			account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	return account
}

func podOfAccount(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}}
	spec := &pod.Spec
	spec.ServiceAccountName = "a"
	if one(r, 6) {
		pod.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
		if one(r, 2) {
			spec.ServiceAccountName = ""
		}
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	if one(r, 3) {
		mounts := one(r, 2)
		spec.AutomountServiceAccountToken = &mounts
	}
	if one(r, 4) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: []string{"s", "x"}[r.Intn(2)]}}
	}
	secret := func() string { return []string{"s", "t", "x"}[r.Intn(3)] }
	build := func(name string) corev1.Container {
		container := corev1.Container{Name: name, Image: "i"}
		if one(r, 4) {
			path := []string{"/var/run/secrets/kubernetes.io/serviceaccount", "/x"}[r.Intn(2)]
			container.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: path}}
		}
		if one(r, 5) {
			container.Env = []corev1.EnvVar{{Name: "E", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret()}, Key: "k"}}}}
		}
		if one(r, 5) {
			container.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret()}}}}
		}
		return container
	}
	for i := range 1 + r.Intn(2) {
		spec.Containers = append(spec.Containers, build(fmt.Sprint("c", i)))
	}
	for i := range r.Intn(2) {
		spec.InitContainers = append(spec.InitContainers, build(fmt.Sprint("i", i)))
	}
	if one(r, 4) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret()}}})
	}
	if one(r, 6) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "kube-api-access-own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	if one(r, 6) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}})
	}
	return pod
}
