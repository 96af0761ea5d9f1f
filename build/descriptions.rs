//! What upstream says of its types and fields, taken from the JSON Schemas of `k8s-openapi`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::schemars::generate::{SchemaGenerator, SchemaSettings};
use k8s_openapi::{api, apiextensions_apiserver, apimachinery, kube_aggregator};

/// By the name of a schema: the descriptions of its fields, and under "" its own.
type Descriptions = BTreeMap<String, BTreeMap<String, String>>;

/// ASCII's unit separator and record separator.
const UNIT_END: char = '\x1f';
const RECORD_END: char = '\x1e';

/// Writes records in gzip, sorted: the name of a schema, of a field or nothing, and the text, each with its end.
pub fn write(target: &Path) -> Result<(), Box<dyn Error>> {
    let mut generator = SchemaSettings::default().into_generator();
    add_kinds(&mut generator);
    let mut descriptions = Descriptions::new();
    for (name, schema) in generator.take_definitions(false) {
        let mut texts = BTreeMap::new();
        let own = schema["description"].as_str();
        texts.extend(own.map(|text| (String::new(), text.to_owned())));
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            texts.extend(schema["description"].as_str().map(|text| (field.clone(), text.to_owned())));
        }
        if !texts.is_empty() {
            descriptions.insert(name, texts);
        }
    }
    let mut encoder = GzEncoder::new(File::create(target)?, Compression::best());
    for (schema, texts) in &descriptions {
        for (field, text) in texts {
            if text.contains([UNIT_END, RECORD_END]) {
                return Err(format!("{schema}.{field} has a control character in its description").into());
            }
            write!(encoder, "{schema}{UNIT_END}{field}{UNIT_END}{text}{RECORD_END}")?;
        }
    }
    encoder.finish()?;
    Ok(())
}

/// Adds kinds, and all that they refer to.
macro_rules! kinds {
    ($generator:ident: $($package:path { $($kind:ident),* $(,)? })*) => {
        $({
            use $package as package;
            $($generator.subschema_for::<package::$kind>();)*
        })*
    };
}

fn add_kinds(generator: &mut SchemaGenerator) {
    kinds! { generator:
        api::admissionregistration::v1 {
            MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
            ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
        }
        api::admissionregistration::v1beta1 { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding }
        apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition }
        kube_aggregator::pkg::apis::apiregistration::v1 { APIService }
        api::apiserverinternal::v1alpha1 { StorageVersion }
        api::apps::v1 { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet }
        api::authentication::v1 { SelfSubjectReview, TokenRequest, TokenReview }
        api::authorization::v1 {
            LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
        }
        api::autoscaling::v1 { HorizontalPodAutoscaler, Scale }
        api::autoscaling::v2 { HorizontalPodAutoscaler }
        api::batch::v1 { CronJob, Job }
        api::certificates::v1 { CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest }
        api::coordination::v1 { Lease }
        api::core::v1 {
            Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume,
            PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service,
            ServiceAccount,
        }
        api::discovery::v1 { EndpointSlice }
        api::events::v1 { Event }
        api::flowcontrol::v1 { FlowSchema, PriorityLevelConfiguration }
        api::networking::v1 { IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR }
        api::node::v1 { RuntimeClass }
        api::policy::v1 { Eviction, PodDisruptionBudget }
        api::rbac::v1 { ClusterRole, ClusterRoleBinding, Role, RoleBinding }
        api::resource::v1 {
            DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
        }
        api::scheduling::v1 { PriorityClass }
        api::storage::v1 {
            CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass,
        }
        api::storagemigration::v1 { StorageVersionMigration }
        apimachinery::pkg::apis::meta::v1 {
            APIGroup, APIGroupList, APIResourceList, APIVersions, DeleteOptions, ListMeta, Patch, Status,
        }
        apimachinery::pkg::version { Info }
    }
}
