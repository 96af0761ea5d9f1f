//! Services.

pub mod cluster_ip;
pub mod columns;
pub mod load_balancer;
pub mod normal_form;
pub mod warnings;

use std::collections::BTreeSet;

use crate::causes::Causes;
use crate::gotext;
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_key};
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::{ip, selector};
use crate::kinds::behavior::selectable::field;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::pod_spec::probe;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("services", "Service")
        .short(&["svc"])
        .category("all")
        .sub(&["proxy", "status"])
        .creates_on_update()
        .returns_deleted(),
    strategy: Strategy {
        names: NameFormat::Dns1123Label,
        status: StatusRule::Reset(r#"{"loadBalancer":{}}"#),
        hooks: &ServiceHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::same(warnings::warn).with_status(load_balancer::warn_status),
    columns: &columns::COLUMNS,
    fields: || SelectableFields::namespaced(vec![field("spec.clusterIP"), field("spec.type")]),
    other_version: None,
};

#[derive(Debug)]
struct ServiceHooks;

impl Hooks for ServiceHooks {
    fn begin_create(&self, object: &mut ObjectMap) {
        normal_form::begin_create(object);
    }

    fn begin_update(&self, new: &mut ObjectMap, old: &ObjectMap) {
        normal_form::begin_update(new, old);
    }

    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        normal_form::drop_internal_policy(object);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        normal_form::prepare_update(new, old);
    }
}

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";

const MODE: &str = "service.kubernetes.io/topology-mode";

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// In seconds: a day.
const AFFINITY_MAX: i64 = 86_400;

/// A service with its old version.
pub struct Service<'a> {
    pub spec: At<'a, 'static>,
    pub old: Option<At<'a, 'static>>,
}

impl<'a> Service<'a> {
    pub fn kind(&self) -> &'a str {
        kind(&self.spec)
    }

    fn externally_accessible(&self) -> bool {
        externally_accessible(&self.spec)
    }

    /// Whether the field has remained from the old type, which needed it. It is not the client's mistake, and is
    /// dropped with the change of the type.
    fn left_over(&self, name: &str, needed: impl Fn(&At<'_, '_>) -> bool) -> bool {
        self.old.is_some_and(|old| {
            needed(&old) && !needed(&self.spec) && old.get(name).value() == self.spec.get(name).value()
        })
    }
}

pub fn kind<'a>(spec: &At<'a, '_>) -> &'a str {
    spec.get("type").text_or("ClusterIP")
}

fn externally_accessible(spec: &At<'_, '_>) -> bool {
    match kind(spec) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.get("externalIPs").is_empty(),
        _ => false,
    }
}

fn needs_health_check(spec: &At<'_, '_>) -> bool {
    kind(spec) == "LoadBalancer" && spec.get("externalTrafficPolicy").text() == "Local"
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let service = Service { spec: At::member(object, "spec"), old: None };
    validate(&service, object, None, errors);
}

/// Errors of the addresses and their families alone.
pub fn address_causes(new: &ObjectMap, old: Option<&ObjectMap>) -> Causes {
    let mut errors = Errors::default();
    let service = Service { spec: At::member(new, "spec"), old: old.map(|old| At::member(old, "spec")) };
    cluster_ip::validate(&service, &mut errors);
    errors.into_causes()
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old_spec) = (At::member(new, "spec"), At::member(old, "spec"));
    let service = Service { spec, old: Some(old_spec) };
    cluster_ip::changes(&service, &old_spec, errors);
    load_balancer_class_stays(&spec, &old_spec, errors);
    let port = spec.get("healthCheckNodePort");
    if needs_health_check(&spec)
        && needs_health_check(&old_spec)
        && port.value() != old_spec.get("healthCheckNodePort").value()
    {
        errors.forbidden(&port, "field is immutable");
    }
    validate(&service, new, Some(old), errors);
}

fn load_balancer_class_stays(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let class = new.get("loadBalancerClass");
    let both = kind(new) == "LoadBalancer" && kind(old) == "LoadBalancer";
    if both && class.opt_text() != old.get("loadBalancerClass").opt_text() {
        errors.invalid(&class, class.value(), "may not change once set");
    }
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (status, before) = (At::member(new, "status"), At::member(old, "status"));
    let (balancer, before) = (status.get("loadBalancer"), before.get("loadBalancer"));
    let kind = kind(&At::member(new, "spec"));
    load_balancer::service_status(&balancer, &before, kind, errors);
}

fn validate(service: &Service<'_>, object: &ObjectMap, old: Option<&ObjectMap>, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    let spec = &service.spec;
    hints(&metadata.get("annotations"), errors);
    let headless = cluster_ip::is_headless(spec);
    let ports = spec.get("ports");
    if ports.is_empty() && !headless && service.kind() != "ExternalName" {
        errors.required(&ports, "");
    }
    kind_fits(service, headless, errors);
    let mut names = BTreeSet::new();
    for port in ports.items() {
        one_port(&port, ports.len() > 1, &mut names, errors);
    }
    selector::labels(&spec.get("selector"), errors);
    affinity(spec, errors);
    cluster_ip::validate(service, errors);
    external_addresses(service, errors);
    let kind = spec.get("type");
    errors.one_of(&kind, service.kind(), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    ports_differ(service, errors);
    source_ranges(service, &metadata, old, errors);
    balancer_fields(service, errors);
    traffic(service, errors);
}

fn hints(annotations: &At<'_, '_>, errors: &mut Errors) {
    let (hints, mode) = (annotations.key(HINTS), annotations.key(MODE));
    if hints.is_set() && mode.is_set() && hints.text() != mode.text() {
        let why = format!("must match annotations[{HINTS}] when both are specified");
        errors.invalid(&mode, mode.text(), &why);
    }
}

fn kind_fits(service: &Service<'_>, headless: bool, errors: &mut Errors) {
    let spec = &service.spec;
    match service.kind() {
        kind @ ("LoadBalancer" | "NodePort") if headless => {
            let ips = spec.get("clusterIPs");
            errors.invalid(&ips.index(0), "None", &format!("may not be set to 'None' for {kind} services"));
        }
        "ExternalName" => {
            for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let field = spec.get(name);
                let given = if name == "ipFamilyPolicy" { field.is_set() } else { !field.is_empty() };
                if given && !service.left_over(name, |spec| kind(spec) != "ExternalName") {
                    errors.forbidden(&field, "may not be set for ExternalName services");
                }
            }
            let name = spec.get("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => errors.required(&name, ""),
                text => errors.invalid_each(&name, text, dns1123_subdomain(text)),
            }
        }
        _ => {}
    }
}

fn one_port<'v>(port: &At<'v, '_>, named: bool, names: &mut BTreeSet<&'v str>, errors: &mut Errors) {
    let (name, protocol, target) = (port.get("name"), port.get("protocol"), port.get("targetPort"));
    if !name.text().is_empty() {
        errors.in_format(&name, dns1123_label);
        errors.distinct_from(&name, names);
    } else if named {
        errors.required(&name, "");
    }
    errors.port(&port.get("port"));
    errors.one_of(&protocol, protocol.text_or("TCP"), &PROTOCOLS);
    // The default is the port itself.
    let unsaid = target.text().is_empty() && target.int() == 0;
    probe::port_or_name(&if unsaid { target.holding(port.get("port").value()) } else { target }, errors);
    let protocol = port.get("appProtocol");
    errors.in_format_if_set(&protocol, label_key);
}

fn affinity(spec: &At<'_, '_>, errors: &mut Errors) {
    let affinity = spec.get("sessionAffinity");
    errors.one_of(&affinity, affinity.text_or("None"), &["ClientIP", "None"]);
    if affinity.text() != "ClientIP" {
        return;
    }
    let config = spec.get("sessionAffinityConfig");
    let timeout = config.dig(&["clientIP", "timeoutSeconds"]);
    // The default is three hours.
    let seconds = timeout.opt_int().unwrap_or(10_800);
    if !(1..=AFFINITY_MAX).contains(&seconds) {
        errors.invalid(&timeout, seconds, &format!("must be greater than 0 and less than {AFFINITY_MAX}"));
    }
}

fn external_addresses(service: &Service<'_>, errors: &mut Errors) {
    let known: BTreeSet<&str> =
        service.old.map(|old| old.get("externalIPs").texts().collect()).unwrap_or_default();
    for address in service.spec.get("externalIPs").items() {
        let before = errors.len();
        ip::legacy(&address, address.text(), &known, errors);
        if errors.len() == before {
            ip::endpoint(&address, address.text(), errors);
        }
    }
}

fn ports_differ(service: &Service<'_>, errors: &mut Errors) {
    let ports = service.spec.get("ports");
    let takes_nodes = |spec: &At<'_, '_>| matches!(kind(spec), "NodePort" | "LoadBalancer");
    let kept = service.old.is_some_and(|old| takes_nodes(&old) && same_node_ports(&old, &service.spec));
    if service.kind() == "ClusterIP" && !kept {
        for port in ports.items().filter(|port| port.get("nodePort").int() != 0) {
            errors.forbidden(&port.get("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let (mut nodes, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports.items() {
        let protocol = port.get("protocol").text_or("TCP");
        let node = port.get("nodePort");
        if node.int() != 0 && !nodes.insert((protocol, node.int())) {
            errors.duplicate(&node, node.int());
        }
    }
    for port in ports.items() {
        let (protocol, number) = (port.get("protocol").text_or("TCP"), port.get("port").int());
        if !numbers.insert((protocol, number)) {
            // Upstream prints its internal struct.
            let protocol = gotext::json(&protocol.into());
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.duplicate(&port, Verbatim(shown));
        }
    }
}

fn same_node_ports(old: &At<'_, '_>, new: &At<'_, '_>) -> bool {
    let ports = |spec: &At<'_, '_>| -> BTreeSet<i64> {
        spec.get("ports").items().map(|port| port.get("nodePort").int()).filter(|port| *port != 0).collect()
    };
    ports(old) == ports(new)
}

fn source_ranges(service: &Service<'_>, metadata: &At<'_, '_>, old: Option<&ObjectMap>, errors: &mut Errors) {
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = service.spec.get("loadBalancerSourceRanges");
    let balanced = service.kind() == "LoadBalancer";
    if !ranges.is_empty() {
        // Upstream's path starts with a capital.
        let place = service.spec.get("LoadBalancerSourceRanges");
        if !balanced {
            errors.forbidden(&place, only);
        }
        let known: BTreeSet<&str> = service
            .old
            .map(|old| old.get("loadBalancerSourceRanges").texts().map(str::trim).collect())
            .unwrap_or_default();
        for (index, text) in ranges.texts().map(str::trim).enumerate() {
            ip::legacy_range(&place.index(index), text, &known, errors);
        }
        return;
    }
    let annotations = metadata.get("annotations");
    let annotation = annotations.key(SOURCE_RANGES);
    let Some(text) = annotation.opt_text() else { return };
    if !balanced {
        errors.forbidden(&annotation, only);
    }
    let before = old.and_then(|old| old.get("metadata")?.get("annotations")?.get(SOURCE_RANGES)?.as_str());
    if before != Some(text) && !text.trim().is_empty() {
        for range in text.trim().split(',').map(str::trim) {
            ip::legacy_range(&annotation, range, &BTreeSet::new(), errors);
        }
    }
}

fn balancer_fields(service: &Service<'_>, errors: &mut Errors) {
    let balanced = |spec: &At<'_, '_>| kind(spec) == "LoadBalancer";
    let class = service.spec.get("loadBalancerClass");
    for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let field = service.spec.get(name);
        if field.is_set() && !balanced(&service.spec) && !service.left_over(name, balanced) {
            errors.forbidden(&field, "may only be used when `type` is 'LoadBalancer'");
        }
    }
    if balanced(&service.spec)
        && let Some(text) = class.opt_text()
    {
        errors.invalid_each(&class, text, label_key(text));
    }
}

fn traffic(service: &Service<'_>, errors: &mut Errors) {
    let spec = &service.spec;
    let (external, internal) = (spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy"));
    if service.externally_accessible() {
        errors.one_of(&external, external.text_or("Cluster"), &["Cluster", "Local"]);
    } else if !external.text().is_empty()
        && !service.left_over("externalTrafficPolicy", externally_accessible)
    {
        errors.invalid(&external, external.text(), "may only be set for externally-accessible services");
    }
    let health = spec.get("healthCheckNodePort");
    if needs_health_check(spec) {
        // An absent one is allocated.
        if health.int() != 0 {
            errors.port(&health);
        }
    } else if health.int() != 0 && !service.left_over("healthCheckNodePort", needs_health_check) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.invalid(&health, health.int(), why);
    }
    if let Some(policy) = internal.opt_text() {
        errors.one_of(&internal, policy, &["Cluster", "Local"]);
    }
    let distribution = spec.get("trafficDistribution");
    if let Some(text) = distribution.opt_text() {
        errors.one_of(&distribution, text, &["PreferClose", "PreferSameZone", "PreferSameNode"]);
    }
}

pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
