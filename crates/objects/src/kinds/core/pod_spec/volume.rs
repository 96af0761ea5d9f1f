//! Volumes of pods: names and sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::rules::resource;
use crate::kinds::core::pod_spec::volume_files::{downward, files};
use crate::kinds::core::pod_spec::{Owner, projected};
use crate::kinds::core::{persistent_volume_claim, volume_source};
use crate::kinds::prelude::*;

/// The definitions of valid volumes, by name.
pub type VolumesByName<'v> = BTreeMap<&'v str, &'v Value>;

/// A volume and the owner of its spec.
#[derive(Clone, Copy)]
struct VolumeContext<'a> {
    volume: &'a str,
    owner: Owner<'a>,
}

type Rule = fn(&At<'_, '_>, VolumeContext<'_>, &mut Errors);

/// The possible sources, in the order in which upstream checks them. The second name is used in errors about a second
/// source.
const SOURCES: [(&str, &str, Rule); 30] = [
    ("emptyDir", "emptyDir", |at, _, errors| empty_dir(at, errors)),
    ("hostPath", "hostPath", |at, _, errors| volume_source::host_path(at, errors)),
    ("gitRepo", "gitRepo", |at, _, errors| volume_source::git_repo(at, errors)),
    ("gcePersistentDisk", "gcePersistentDisk", |at, _, errors| volume_source::gce_disk(at, errors)),
    ("awsElasticBlockStore", "awsElasticBlockStore", |at, _, errors| volume_source::aws_disk(at, errors)),
    ("secret", "secret", |at, _, errors| files(at, "secretName", errors)),
    ("nfs", "nfs", |at, _, errors| volume_source::nfs(at, errors)),
    ("iscsi", "iscsi", |at, _, errors| volume_source::iscsi(at, errors)),
    ("glusterfs", "glusterfs", |at, _, errors| volume_source::require(at, &["endpoints", "path"], errors)),
    ("flocker", "flocker", |at, _, errors| volume_source::flocker(at, errors)),
    ("persistentVolumeClaim", "persistentVolumeClaim", |at, _, errors| {
        volume_source::require(at, &["claimName"], errors);
    }),
    ("rbd", "rbd", |at, _, errors| volume_source::rbd(at, errors)),
    ("cinder", "cinder", |at, _, errors| volume_source::cinder(at, &["name"], errors)),
    ("cephfs", "cephFS", |at, _, errors| volume_source::cephfs(at, errors)),
    ("quobyte", "quobyte", |at, _, errors| volume_source::quobyte(at, errors)),
    ("downwardAPI", "downwarAPI", |at, _, errors| downward(at, errors)),
    ("fc", "fc", |at, _, errors| volume_source::fibre_channel(at, errors)),
    ("flexVolume", "flexVolume", |at, _, errors| volume_source::flex(at, errors)),
    ("configMap", "configMap", |at, _, errors| files(at, "name", errors)),
    ("azureFile", "azureFile", |at, _, errors| {
        volume_source::require(at, &["secretName", "shareName"], errors)
    }),
    ("vsphereVolume", "vsphereVolume", |at, _, errors| volume_source::require(at, &["volumePath"], errors)),
    ("photonPersistentDisk", "photonPersistentDisk", |at, _, errors| {
        volume_source::require(at, &["pdID"], errors)
    }),
    ("portworxVolume", "portworxVolume", |at, _, errors| volume_source::require(at, &["volumeID"], errors)),
    ("azureDisk", "azureDisk", |at, _, errors| volume_source::azure_disk(at, errors)),
    ("storageos", "storageos", |at, _, errors| volume_source::storage_os(at, &["name"], errors)),
    ("projected", "projected", |at, _, errors| projected::validate(at, errors)),
    ("scaleIO", "scaleIO", |at, _, errors| {
        volume_source::require(at, &["gateway", "system", "volumeName"], errors)
    }),
    ("csi", "csi", |at, _, errors| csi(at, errors)),
    ("ephemeral", "ephemeral", ephemeral),
    ("image", "image", image),
];

/// Validates all volumes of a pod. Returns the valid ones.
pub fn volumes<'v>(list: &At<'v, '_>, owner: Owner<'v>, errors: &mut Errors) -> VolumesByName<'v> {
    let mut known = VolumesByName::new();
    let claims = if let Owner::StatefulTemplate(claims) = owner { claims } else { &[] };
    for (index, name) in claims.iter().enumerate() {
        claim_volume(&list.index(index).get("name"), name, &mut known, errors);
    }
    let claimed: BTreeSet<&str> = claims.iter().copied().collect();
    let own = list.items().filter(|volume| !claimed.contains(volume.get("name").text()));
    let is_ephemeral = |volume: &At<'_, '_>| volume.get("ephemeral").is_set();
    let ephemeral: BTreeSet<&str> =
        list.items().filter(is_ephemeral).map(|volume| volume.get("name").text()).collect();
    for (index, volume) in own.enumerate() {
        let volume = list.index(claims.len() + index).holding(volume.value());
        let mut own = Errors::default();
        validate(&volume, owner, &known, &mut own);
        if own.is_empty() {
            known.insert(volume.get("name").text(), volume.value());
        }
        errors.append(own);
        claimed_twice(&volume, &ephemeral, owner, errors);
    }
    known
}

/// A volume that a stateful set adds for one of its claims.
fn claim_volume<'v>(at: &At<'_, '_>, name: &'v str, known: &mut VolumesByName<'v>, errors: &mut Errors) {
    static CLAIM: LazyLock<Value> = LazyLock::new(|| crate::tree::json!({"persistentVolumeClaim": {}}));
    let messages = dns1123_label(name);
    if name.is_empty() {
        errors.required(at, "");
        let claim = at.called("persistentVolumeClaim");
        errors.required(&claim.get("claimName"), "");
    } else if messages.is_empty() {
        known.entry(name).or_insert(&CLAIM);
    } else {
        errors.invalid_each(at, name, messages);
    }
}

fn validate(volume: &At<'_, '_>, owner: Owner<'_>, known: &VolumesByName<'_>, errors: &mut Errors) {
    let name = volume.get("name");
    validate_source(volume, VolumeContext { volume: name.text(), owner }, errors);
    errors.required_in_format(&name, dns1123_label);
    if known.contains_key(name.text()) {
        errors.duplicate(&name, name.text());
    }
}

fn validate_source(volume: &At<'_, '_>, place: VolumeContext<'_>, errors: &mut Errors) {
    let mut found = false;
    for (field, called, rule) in SOURCES {
        let at = volume.get(field);
        if !at.is_set() {
            continue;
        }
        if found {
            errors.forbidden(&volume.get(called), "may not specify more than 1 volume type");
        } else {
            rule(&at, place, errors);
        }
        found = true;
        if field == "iscsi" {
            volume_source::iscsi_name_fits(&at, &volume.get("name"), place.volume, errors);
        }
    }
    // The default is an empty directory.
}

/// A pod cannot refer to a claim that is created for another of its volumes.
fn claimed_twice(volume: &At<'_, '_>, ephemeral: &BTreeSet<&str>, owner: Owner<'_>, errors: &mut Errors) {
    let claim = volume.dig(&["persistentVolumeClaim", "claimName"]);
    let (Owner::Pod(name), Some(text)) = (owner, claim.opt_text()) else { return };
    let made = |text: &str| {
        let of_pod = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        of_pod.is_some_and(|volume| ephemeral.contains(volume))
    };
    if !name.is_empty() && made(text) {
        errors.invalid(&claim, text, "must not reference a PVC that gets created for an ephemeral volume");
    }
}

fn empty_dir(at: &At<'_, '_>, errors: &mut Errors) {
    let limit = at.get("sizeLimit");
    if limit.is_set() && resource::nanos(&limit) < 0 {
        errors.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
    }
}

fn csi(at: &At<'_, '_>, errors: &mut Errors) {
    volume_source::csi_driver(&at.get("driver"), errors);
    let secret = at.get("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.get("name");
        if errors.present(&name, "") {
            errors.invalid_each(&at.get("name"), name.text(), dns1123_subdomain(name.text()));
        }
    }
}

fn ephemeral(at: &At<'_, '_>, place: VolumeContext<'_>, errors: &mut Errors) {
    let template = at.get("volumeClaimTemplate");
    if template.is_set() {
        crate::kinds::behavior::rules::metadata::template(&template.get("metadata"), errors);
        persistent_volume_claim::spec(&template.get("spec"), errors);
    } else {
        errors.required(&template, "");
    }
    if let Owner::Pod(pod) = place.owner
        && !pod.is_empty()
        && !place.volume.is_empty()
    {
        let claim = format!("{pod}-{}", place.volume);
        for message in dns1123_subdomain(&claim) {
            errors.invalid(&at.called("name"), place.volume, &format!("PVC name \"{claim}\": {message}"));
        }
    }
}

fn image(at: &At<'_, '_>, place: VolumeContext<'_>, errors: &mut Errors) {
    if matches!(place.owner, Owner::Pod(_)) {
        volume_source::require(at, &["reference"], errors);
    }
    let policy = at.get("pullPolicy");
    let supported = ["Always", "IfNotPresent", "Never"];
    // The default replaces an empty policy.
    errors.one_of(&policy, policy.text_or("IfNotPresent"), &supported);
}
