package main

import (
	"context"
	"fmt"
	"math/rand"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

type objects struct {
	Pods        []corev1.Pod
	Volumes     []corev1.PersistentVolume
	Attachments map[string]string
	Slices      map[string]string
}

type asked struct {
	Objects  objects
	Requests []request
}

func nodes() []any {
	random := rand.New(rand.NewSource(2))
	var all []any
	for n := 0; n < 150; n++ {
		drawn := drawObjects(random)
		graph := node.NewGraph()
		for i := range drawn.Pods {
			if drawn.Pods[i].Spec.NodeName != "" {
				graph.AddPod(&drawn.Pods[i])
			}
		}
		for i := range drawn.Volumes {
			graph.AddPV(&drawn.Volumes[i])
		}
		for name, on := range drawn.Attachments {
			graph.AddVolumeAttachment(name, on)
		}
		for name, on := range drawn.Slices {
			graph.AddResourceSlice(name, on)
		}
		nodes := node.NewAuthorizer(graph, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
		line := asked{Objects: drawn}
		for m := 0; m < 60; m++ {
			line.Requests = append(line.Requests, askNode(nodes, drawNodeRequest(random)))
		}
		all = append(all, line)
	}
	return all
}

func askNode(nodes *node.NodeAuthorizer, r request) request {
	attributes := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: r.User, Groups: r.Groups}, Verb: r.Verb, Namespace: r.Namespace, APIGroup: r.Group,
		APIVersion: "v1", Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, ResourceRequest: r.Path == "", Path: r.Path,
	}
	if r.Fields != "" {
		attributes.FieldSelectorRequirements = fields.ParseSelectorOrDie(r.Fields).Requirements()
	}
	decision, reason, err := nodes.Authorize(context.Background(), attributes)
	check(err)
	r.Allowed = decision == authorizer.DecisionAllow
	r.Reasons = []string{reason}
	return r
}

func drawObjects(random *rand.Rand) objects {
	on := func() string { return one(random, "", "n", "n", "m") }
	drawn := objects{Attachments: map[string]string{}, Slices: map[string]string{}}
	for n := 0; n < 5; n++ {
		drawn.Pods = append(drawn.Pods, drawPod(random, fmt.Sprint("p", n), on()))
	}
	for n := 0; n < 3; n++ {
		drawn.Volumes = append(drawn.Volumes, drawVolume(random, fmt.Sprint("v", n)))
		drawn.Attachments[fmt.Sprint("t", n)] = on()
		drawn.Slices[fmt.Sprint("l", n)] = on()
	}
	return drawn
}

func drawPod(random *rand.Rand, name, on string) corev1.Pod {
	object := func() string { return one(random, "x", "y", "z", "") }
	reference := func() corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: object()} }
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: one(random, namespaces...), UID: "u"}, Spec: corev1.PodSpec{NodeName: on, ServiceAccountName: object()}}
	if random.Intn(8) == 0 {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "m"}
	}
	if random.Intn(3) == 0 {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{reference()}
	}
	container := corev1.Container{Name: "c"}
	if random.Intn(2) == 0 {
		container.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference()}}, {ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference()}}}
	}
	if random.Intn(2) == 0 {
		container.Env = []corev1.EnvVar{
			{Name: "a", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference()}}},
			{Name: "b", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference()}}},
		}
	}
	switch random.Intn(3) {
	case 0:
		pod.Spec.InitContainers = []corev1.Container{container}
	case 1:
		pod.Spec.Containers = []corev1.Container{container}
	default:
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "c", Env: container.Env, EnvFrom: container.EnvFrom}}}
	}
	for n := random.Intn(3); n > 0; n-- {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("w", n), VolumeSource: drawSource(random, object, reference)})
	}
	if random.Intn(3) == 0 {
		claim := object()
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "d", ResourceClaimName: &claim}, {Name: "e", ResourceClaimTemplateName: &claim}}
		made := "made"
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "e", ResourceClaimName: &made}}
		if claim == "" {
			pod.Spec.ResourceClaims = pod.Spec.ResourceClaims[1:]
		}
	}
	if random.Intn(5) == 0 {
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"}
	}
	return pod
}

func drawSource(random *rand.Rand, object func() string, reference func() corev1.LocalObjectReference) corev1.VolumeSource {
	local := reference()
	switch random.Intn(14) {
	case 0:
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: object()}}
	case 1:
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local}}
	case 2:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: object()}}
	case 3:
		return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	case 4:
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: local}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: reference()}}}}}
	case 5:
		return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &local}}
	case 6:
		return corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: object()}}
	case 7:
		return corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: &local}}
	case 8:
		return corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: &local}}
	case 9:
		return corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: &local}}
	case 10:
		return corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: &local}}
	case 11:
		return corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &local}}
	case 12:
		return corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &local}}
	default:
		return corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: &local}}
	}
}

func drawVolume(random *rand.Rand, name string) corev1.PersistentVolume {
	object, namespace := one(random, "x", "y", "z", ""), one(random, "", "a", "b")
	reference := &corev1.SecretReference{Name: object, Namespace: namespace}
	volume := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if random.Intn(5) > 0 {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: one(random, namespaces...), Name: one(random, "x", "y", "z")}
	}
	source := &volume.Spec.PersistentVolumeSource
	switch random.Intn(11) {
	case 0:
		source.AzureFile = &corev1.AzureFilePersistentVolumeSource{SecretName: object, SecretNamespace: &namespace}
	case 1:
		source.CephFS = &corev1.CephFSPersistentVolumeSource{SecretRef: reference}
	case 2:
		source.Cinder = &corev1.CinderPersistentVolumeSource{SecretRef: reference}
	case 3:
		source.FlexVolume = &corev1.FlexPersistentVolumeSource{SecretRef: reference}
	case 4:
		source.RBD = &corev1.RBDPersistentVolumeSource{SecretRef: reference}
	case 5:
		source.ScaleIO = &corev1.ScaleIOPersistentVolumeSource{SecretRef: reference}
	case 6:
		source.ISCSI = &corev1.ISCSIPersistentVolumeSource{SecretRef: reference}
	case 7:
		source.StorageOS = &corev1.StorageOSPersistentVolumeSource{SecretRef: &corev1.ObjectReference{Name: object, Namespace: namespace}}
	case 8:
		source.CSI = &corev1.CSIPersistentVolumeSource{NodePublishSecretRef: reference, ControllerPublishSecretRef: &corev1.SecretReference{Name: "x", Namespace: "a"}}
	case 9:
		source.CSI = &corev1.CSIPersistentVolumeSource{NodeStageSecretRef: reference}
	default:
		source.CSI = &corev1.CSIPersistentVolumeSource{NodeExpandSecretRef: reference, ControllerExpandSecretRef: &corev1.SecretReference{Name: "y", Namespace: "b"}}
	}
	return volume
}

func drawNodeRequest(random *rand.Rand) request {
	r := request{User: one(random, "system:node:n", "system:node:n", "system:node:n", "system:node:m", "system:node:", "u"), Verb: one(random, "get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post")}
	if random.Intn(10) > 0 {
		r.Groups = []string{"system:nodes"}
	}
	if random.Intn(30) == 0 {
		r.Path = "/healthz"
		return r
	}
	kinds := [][3]string{
		{"", "secrets", "x y z"}, {"", "configmaps", "x y z"}, {"", "persistentvolumeclaims", "x y p0-w1 p1-w1"},
		{"", "persistentvolumes", "v0 v1 v2"}, {"resource.k8s.io", "resourceclaims", "x made extended"},
		{"storage.k8s.io", "volumeattachments", "t0 t1 t2"}, {"", "serviceaccounts", "x y z"},
		{"coordination.k8s.io", "leases", "n m x"}, {"storage.k8s.io", "csinodes", "n m x"},
		{"resource.k8s.io", "resourceslices", "l0 l1 l2"}, {"", "nodes", "n m x"}, {"", "pods", "p0 p1 p2 p3 p4"},
		{"", "services", "x"}, {"", "events", "x"}, {"node.k8s.io", "runtimeclasses", "x"},
		{"certificates.k8s.io", "podcertificaterequests", "x"}, {"certificates.k8s.io", "clustertrustbundles", "x"},
	}
	kind := kinds[random.Intn(len(kinds))]
	r.Group, r.Resource = kind[0], kind[1]
	r.Subresource = one(random, "", "", "", "", "status", "token", "eviction")
	r.Namespace = one(random, "", "a", "a", "b", "kube-node-lease")
	if random.Intn(6) > 0 {
		var choices []string
		word := ""
		for _, c := range kind[2] + " " {
			if c == ' ' {
				choices = append(choices, word)
				word = ""
			} else {
				word += string(c)
			}
		}
		r.Name = one(random, choices...)
	}
	r.Fields = one(random, "", "", "spec.nodeName=n", "spec.nodeName=m", "spec.nodeName!=n", "spec.nodeName=n,metadata.name=x")
	return r
}
