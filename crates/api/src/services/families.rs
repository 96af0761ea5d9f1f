//! IP families of a Service: how many it has and which (upstream's `initIPFamilyFields`). Validation has checked the
//! addresses before.

use std::net::IpAddr;

use crate::causes::Cause;
use crate::config::service_ranges::Config;
use crate::config::service_ranges::Family;
use crate::gotext::quote;
use crate::kinds::core::service::normal_form::has_addresses;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

const NONE: &str = "None";
const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// Completes policy and families, and refuses contradictions.
pub(super) fn complete(
    spec: &mut ObjectMap,
    old: Option<&ObjectMap>,
    config: &Config,
) -> Result<(), Vec<Cause>> {
    if stay(spec, old) {
        return Ok(());
    }
    let headless = fields::text(spec, &["clusterIP"]) == NONE;
    let unselective = headless && fields::object(spec, "selector").is_none_or(|selector| selector.is_empty());
    if fields::text(spec, &["ipFamilyPolicy"]).is_empty() {
        let before = old.map_or("", |old| fields::text(old, &["ipFamilyPolicy"]));
        let policy = match before {
            "" if unselective => REQUIRE,
            "" => SINGLE,
            before => before,
        };
        let policy = Value::from(policy);
        spec.insert("ipFamilyPolicy", policy);
    }
    let policy = fields::text(spec, &["ipFamilyPolicy"]).to_owned();
    if let Some(old) = old.filter(|_| policy == SINGLE) {
        for name in ["clusterIPs", "ipFamilies"] {
            if spec.get(name) == old.get(name)
                && let Some(Value::Array(list)) = spec.get_mut(name)
            {
                list.truncate(1);
            }
        }
    }
    check_counts(spec, old, &policy)?;
    follow_addresses(spec, config)?;
    let mut families = families(spec);
    let first = *families.first().unwrap_or(&config.networks[0].family());
    if families.is_empty() {
        families.push(first);
    }
    if !unselective {
        check_configured(&families, &policy, config)?;
    }
    if families.len() < 2 && policy != SINGLE && (unselective || config.networks.len() == 2) {
        families.push(first.other());
    }
    let families: Vec<&str> = families.into_iter().map(Family::as_str).collect();
    spec.insert("ipFamilies", json!(families));
    Ok(())
}

/// Whether nothing is done about a Service's addresses.
pub(super) fn stay(spec: &ObjectMap, old: Option<&ObjectMap>) -> bool {
    !has_addresses(spec) || old.is_some_and(|old| prefers_what_it_has(spec, old))
}

/// Whether a Service with `PreferDualStack` keeps its families: an unrelated update does not add a second one.
fn prefers_what_it_has(new: &ObjectMap, old: &ObjectMap) -> bool {
    let prefers = |spec: &ObjectMap| fields::text(spec, &["ipFamilyPolicy"]) == PREFER;
    let same = |name: &str| new.get(name) == old.get(name);
    prefers(new) && prefers(old) && ["type", "clusterIPs", "ipFamilies"].into_iter().all(same)
}

fn check_counts(spec: &ObjectMap, old: Option<&ObjectMap>, policy: &str) -> Result<(), Vec<Cause>> {
    let (addresses, families) = (texts(spec, "clusterIPs").len(), texts(spec, "ipFamilies").len());
    let mut causes = Vec::new();
    let mut refuse = |why: &str| causes.push(Cause::invalid("spec.ipFamilyPolicy", quote(policy), why));
    if policy == SINGLE {
        if addresses == 2 {
            refuse("must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified");
        }
        if families == 2 {
            refuse("must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
        }
    } else if let Some(old) = old {
        if addresses > 0 && addresses < texts(old, "clusterIPs").len() {
            refuse("must be 'SingleStack' to release the secondary cluster IP");
        }
        if families > 0 && families < texts(old, "ipFamilies").len() {
            refuse("must be 'SingleStack' to release the secondary IP family");
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// Adds the families of the requested addresses.
fn follow_addresses(spec: &mut ObjectMap, config: &Config) -> Result<(), Vec<Cause>> {
    let mut families = families(spec);
    let mut causes = Vec::new();
    for (index, address) in texts(spec, "clusterIPs").into_iter().enumerate().skip(families.len()) {
        let Ok(address) = address.parse::<IpAddr>() else { break };
        let family = Family::of(address);
        if config.network(family).is_some() {
            families.push(family);
        } else {
            let why = format!("{} is not configured on this cluster", family.as_str());
            causes.push(Cause::invalid(format!("spec.clusterIPs[{index}]"), &spec["clusterIPs"], &why));
        }
    }
    if !causes.is_empty() {
        return Err(causes);
    }
    if !families.is_empty() {
        let families: Vec<&str> = families.into_iter().map(Family::as_str).collect();
        spec.insert("ipFamilies", json!(families));
    }
    Ok(())
}

fn check_configured(families: &[Family], policy: &str, config: &Config) -> Result<(), Vec<Cause>> {
    let mut causes = Vec::new();
    if policy == REQUIRE && config.networks.len() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        causes.push(Cause::invalid("spec.ipFamilyPolicy", quote(policy), why));
    }
    for (index, family) in
        families.iter().enumerate().filter(|(_, family)| config.network(**family).is_none())
    {
        let field = format!("spec.ipFamilies[{index}]");
        causes.push(Cause::invalid(field, quote(family.as_str()), "not configured on this cluster"));
    }
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// The families in the spec; unknown words are ignored.
pub(super) fn families(spec: &ObjectMap) -> Vec<Family> {
    texts(spec, "ipFamilies").into_iter().filter_map(Family::parse).collect()
}

pub(super) fn texts<'a>(spec: &'a ObjectMap, list: &str) -> Vec<&'a str> {
    fields::items(spec, &[list]).iter().filter_map(Value::as_str).collect()
}
