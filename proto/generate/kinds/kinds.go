// Package kinds says which of upstream's kinds rowplane has.
package kinds

import (
	admissionregistration "k8s.io/api/admissionregistration/v1"
	admissionregistrationbeta "k8s.io/api/admissionregistration/v1beta1"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiserverinternal "k8s.io/api/apiserverinternal/v1alpha1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	storagemigration "k8s.io/api/storagemigration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	metabeta "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Served are the group versions of crates/objects/src/schema/builtin/table.rs.
var Served = []schema.GroupVersion{
	gv("", "v1"),
	gv("admissionregistration.k8s.io", "v1"),
	gv("apiextensions.k8s.io", "v1"),
	gv("apiregistration.k8s.io", "v1"),
	gv("apps", "v1"),
	gv("authentication.k8s.io", "v1"),
	gv("authorization.k8s.io", "v1"),
	gv("autoscaling", "v1"),
	gv("autoscaling", "v2"),
	gv("batch", "v1"),
	gv("certificates.k8s.io", "v1"),
	gv("coordination.k8s.io", "v1"),
	gv("discovery.k8s.io", "v1"),
	gv("events.k8s.io", "v1"),
	gv("flowcontrol.apiserver.k8s.io", "v1"),
	gv("internal.apiserver.k8s.io", "v1alpha1"),
	gv("networking.k8s.io", "v1"),
	gv("node.k8s.io", "v1"),
	gv("policy", "v1"),
	gv("rbac.authorization.k8s.io", "v1"),
	gv("resource.k8s.io", "v1"),
	gv("scheduling.k8s.io", "v1"),
	gv("storage.k8s.io", "v1"),
	gv("storagemigration.k8s.io", "v1"),
}

// Meta are the kinds that every group version shares. Table has no protobuf form.
var Meta = []any{
	meta.APIGroup{}, meta.APIGroupList{}, meta.APIResourceList{}, meta.APIVersions{},
	meta.CreateOptions{}, meta.DeleteOptions{}, meta.GetOptions{}, meta.ListOptions{}, meta.PatchOptions{},
	meta.UpdateOptions{}, meta.List{}, meta.PartialObjectMetadata{}, meta.PartialObjectMetadataList{},
	meta.Status{}, meta.WatchEvent{},
}

// NewScheme has all the kinds of those group versions.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		core.AddToScheme, admissionregistration.AddToScheme, apiextensions.AddToScheme,
		apiregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
		autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batch.AddToScheme, certificates.AddToScheme,
		coordination.AddToScheme, discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme,
		apiserverinternal.AddToScheme, networking.AddToScheme, node.AddToScheme, policy.AddToScheme,
		rbac.AddToScheme, resource.AddToScheme, scheduling.AddToScheme, storage.AddToScheme,
		storagemigration.AddToScheme,
	)
	return scheme, builder.AddToScheme(scheme)
}

// Discovery are the kinds of apidiscovery.k8s.io/v2, which is spoken and not served.
var Discovery = []any{apidiscovery.APIGroupDiscoveryList{}}

// AdmissionBeta are the kinds of admissionregistration.k8s.io/v1beta1 that upstream still serves where it is switched on.
var AdmissionBeta = []any{
	admissionregistrationbeta.MutatingAdmissionPolicy{}, admissionregistrationbeta.MutatingAdmissionPolicyBinding{},
	admissionregistrationbeta.MutatingAdmissionPolicyBindingList{}, admissionregistrationbeta.MutatingAdmissionPolicyList{},
}

// MetaBeta are those that differ in v1beta1 of meta.k8s.io.
var MetaBeta = []any{metabeta.PartialObjectMetadataList{}}

func gv(group, version string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: version}
}
