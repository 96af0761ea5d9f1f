package main

import (
	extensioninstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"
	serviceinstall "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	endpoints "k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/utils/clock"
)

// A strategy is upstream's rules of one kind.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

type rules struct {
	main     strategy
	status   rest.RESTUpdateStrategy
	resource string
}

func gk(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }

// strategies of the kinds that can be checked without a server around them.
var strategies = map[schema.GroupKind]rules{
	gk("", "Pod"):                   {pod.Strategy, pod.StatusStrategy, "pods"},
	gk("", "PodTemplate"):           {podtemplate.Strategy, nil, "podtemplates"},
	gk("", "ReplicationController"): {replicationcontroller.Strategy, replicationcontroller.StatusStrategy, "replicationcontrollers"},
	gk("", "Service"):               {service.Strategy, service.StatusStrategy, "services"},
	gk("", "Endpoints"):             {endpoints.Strategy, nil, "endpoints"},
	gk("", "ConfigMap"):             {configmap.Strategy, nil, "configmaps"},
	gk("", "Secret"):                {secret.Strategy, nil, "secrets"},
	gk("", "ServiceAccount"):        {serviceaccount.Strategy, nil, "serviceaccounts"},
	gk("", "LimitRange"):            {limitrange.Strategy, nil, "limitranges"},
	gk("", "ResourceQuota"):         {resourcequota.Strategy, resourcequota.StatusStrategy, "resourcequotas"},
	gk("", "Namespace"):             {namespace.Strategy, namespace.StatusStrategy, "namespaces"},
	gk("", "Node"):                  {node.Strategy, node.StatusStrategy, "nodes"},
	gk("", "PersistentVolume"):      {persistentvolume.Strategy, persistentvolume.StatusStrategy, "persistentvolumes"},
	gk("", "PersistentVolumeClaim"): {persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy, "persistentvolumeclaims"},

	gk("apps", "Deployment"):         {deployment.Strategy, deployment.StatusStrategy, "deployments"},
	gk("apps", "ReplicaSet"):         {replicaset.Strategy, replicaset.StatusStrategy, "replicasets"},
	gk("apps", "StatefulSet"):        {statefulset.Strategy, statefulset.StatusStrategy, "statefulsets"},
	gk("apps", "DaemonSet"):          {daemonset.Strategy, daemonset.StatusStrategy, "daemonsets"},
	gk("apps", "ControllerRevision"): {controllerrevision.Strategy, nil, "controllerrevisions"},

	gk("batch", "Job"):     {job.Strategy, job.StatusStrategy, "jobs"},
	gk("batch", "CronJob"): {cronjob.Strategy, cronjob.StatusStrategy, "cronjobs"},

	gk("autoscaling", "HorizontalPodAutoscaler"): {horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy, "horizontalpodautoscalers"},
	gk("policy", "PodDisruptionBudget"):          {poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy, "poddisruptionbudgets"},

	gk("networking.k8s.io", "Ingress"):       {ingress.Strategy, ingress.StatusStrategy, "ingresses"},
	gk("networking.k8s.io", "IngressClass"):  {ingressclass.Strategy, nil, "ingressclasses"},
	gk("networking.k8s.io", "NetworkPolicy"): {networkpolicy.Strategy, nil, "networkpolicies"},
	gk("networking.k8s.io", "IPAddress"):     {ipaddress.Strategy, nil, "ipaddresses"},
	gk("networking.k8s.io", "ServiceCIDR"):   {servicecidr.Strategy, servicecidr.StatusStrategy, "servicecidrs"},
	gk("discovery.k8s.io", "EndpointSlice"):  {endpointslice.Strategy, nil, "endpointslices"},

	gk("storage.k8s.io", "StorageClass"):          {storageclass.Strategy, nil, "storageclasses"},
	gk("storage.k8s.io", "CSIDriver"):             {csidriver.Strategy, nil, "csidrivers"},
	gk("storage.k8s.io", "CSINode"):               {csinode.Strategy, nil, "csinodes"},
	gk("storage.k8s.io", "CSIStorageCapacity"):    {csistoragecapacity.Strategy, nil, "csistoragecapacities"},
	gk("storage.k8s.io", "VolumeAttachment"):      {volumeattachment.Strategy, volumeattachment.StatusStrategy, "volumeattachments"},
	gk("storage.k8s.io", "VolumeAttributesClass"): {volumeattributesclass.Strategy, nil, "volumeattributesclasses"},

	gk("rbac.authorization.k8s.io", "Role"):               {role.Strategy, nil, "roles"},
	gk("rbac.authorization.k8s.io", "ClusterRole"):        {clusterrole.Strategy, nil, "clusterroles"},
	gk("rbac.authorization.k8s.io", "RoleBinding"):        {rolebinding.Strategy, nil, "rolebindings"},
	gk("rbac.authorization.k8s.io", "ClusterRoleBinding"): {clusterrolebinding.Strategy, nil, "clusterrolebindings"},

	gk("coordination.k8s.io", "Lease"):                                   {lease.Strategy, nil, "leases"},
	gk("scheduling.k8s.io", "PriorityClass"):                             {priorityclass.Strategy, nil, "priorityclasses"},
	gk("node.k8s.io", "RuntimeClass"):                                    {runtimeclass.Strategy, nil, "runtimeclasses"},
	gk("certificates.k8s.io", "CertificateSigningRequest"):               {certificates.Strategy, certificates.StatusStrategy, "certificatesigningrequests"},
	gk("flowcontrol.apiserver.k8s.io", "FlowSchema"):                     {flowschema.Strategy, flowschema.StatusStrategy, "flowschemas"},
	gk("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"):     {prioritylevelconfiguration.Strategy, prioritylevelconfiguration.StatusStrategy, "prioritylevelconfigurations"},
	gk("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): {validatingwebhookconfiguration.Strategy, nil, "validatingwebhookconfigurations"},
	gk("admissionregistration.k8s.io", "MutatingWebhookConfiguration"):   {mutatingwebhookconfiguration.Strategy, nil, "mutatingwebhookconfigurations"},

	gk("resource.k8s.io", "DeviceClass"):           {deviceclass.Strategy, nil, "deviceclasses"},
	gk("resource.k8s.io", "DeviceTaintRule"):       {devicetaintrule.Strategy, devicetaintrule.StatusStrategy, "devicetaintrules"},
	gk("resource.k8s.io", "ResourceClaim"):         {claims, resourceclaim.NewStatusStrategy(claims), "resourceclaims"},
	gk("resource.k8s.io", "ResourceClaimTemplate"): {resourceclaimtemplate.NewStrategy(nil), nil, "resourceclaimtemplates"},
	gk("resource.k8s.io", "ResourceSlice"):         {resourceslice.Strategy, nil, "resourceslices"},
	gk("certificates.k8s.io", "ClusterTrustBundle"): {
		clustertrustbundle.Strategy, nil, "clustertrustbundles",
	},
	gk("certificates.k8s.io", "PodCertificateRequest"): {
		certificateRequests, podcertificaterequest.NewStatusStrategy(certificateRequests, anybody, clock.RealClock{}),
		"podcertificaterequests",
	},

	gk("", "Event"):              {event.Strategy, nil, "events"},
	gk("events.k8s.io", "Event"): {event.Strategy, nil, "events"},
	gk("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): {
		policies, validatingadmissionpolicy.NewStatusStrategy(policies), "validatingadmissionpolicies",
	},
	gk("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): {
		validatingadmissionpolicybinding.NewStrategy(nil, nil, unresolved), nil, "validatingadmissionpolicybindings",
	},
	gk("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): {
		mutatingadmissionpolicy.NewStrategy(nil, nil), nil, "mutatingadmissionpolicies",
	},
	gk("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): {
		mutatingadmissionpolicybinding.NewStrategy(nil, nil, unresolved), nil, "mutatingadmissionpolicybindings",
	},
	gk("apiextensions.k8s.io", "CustomResourceDefinition"): {
		customresourcedefinition.NewStrategy(legacyscheme.Scheme), customresourcedefinition.NewStatusStrategy(legacyscheme.Scheme),
		"customresourcedefinitions",
	},
	gk("apiregistration.k8s.io", "APIService"): {
		apiservice.NewStrategy(legacyscheme.Scheme), apiservice.NewStatusStrategy(legacyscheme.Scheme), "apiservices",
	},
}

// Nobody is asked: no authorizer is there who wants to know.
var unresolved = resolver.ResourceResolverFunc(func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, nil
})

var anybody = authorizerfactory.NewAlwaysAllowAuthorizer()

var claims = resourceclaim.NewStrategy(nil, anybody)

var certificateRequests = podcertificaterequest.NewStrategy()

var policies = validatingadmissionpolicy.NewStrategy(nil, nil)

// Kinds of the other servers that a kube-apiserver is made of.
func init() {
	extensioninstall.Install(legacyscheme.Scheme)
	serviceinstall.Install(legacyscheme.Scheme)
}
