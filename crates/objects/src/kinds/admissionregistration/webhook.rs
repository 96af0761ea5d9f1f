//! Rules of admission webhooks (`pkg/apis/admissionregistration/validation`).

use std::collections::BTreeSet;

use crate::gotext::quote;
use crate::kinds::admissionregistration::shared::{self, reserved};
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, integer_column, list};
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain, label_key};
use crate::kinds::behavior::rules::expression::{Admission, Purpose};
use crate::kinds::behavior::rules::selector;
use crate::kinds::prelude::*;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

const HARMLESS: [&str; 2] = ["None", "NoneOnDryRun"];

const CONDITIONS: usize = 64;

/// Groups and resources of which neither webhooks nor policies are asked, since they could lock everybody out
/// (`pkg/kubeapiserver/admission/exclusion`).
const EXCLUDED: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Violations that an existing object may keep.
#[derive(Clone, Copy)]
struct Tolerated {
    side_effects: bool,
    unknown_reviews: bool,
    repeated_names: bool,
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let none = Tolerated { side_effects: false, unknown_reviews: false, repeated_names: false };
    hooks(object, none, errors);
    reserved(object, errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let old = At::member(old, "webhooks");
    let harmful = |hook: At<'_, '_>| {
        hook.get("sideEffects").opt_text().is_none_or(|effects| !HARMLESS.contains(&effects))
    };
    let unknown = |hook: At<'_, '_>| {
        let versions = hook.get("admissionReviewVersions");
        !versions.is_empty() && !versions.texts().any(|version| REVIEWS.contains(&version))
    };
    let mut names = BTreeSet::new();
    let tolerated = Tolerated {
        side_effects: old.items().any(harmful),
        unknown_reviews: old.items().any(unknown),
        repeated_names: old.items().any(|hook| !names.insert(hook.get("name").text().to_owned())),
    };
    hooks(new, tolerated, errors);
}

/// Warns of reserved names, and of rules that name resources of which no webhook is asked.
pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    shared::warn(object, remarks);
    for hook in At::member(object, "webhooks").items() {
        for rule in hook.get("rules").items() {
            warn_of_excluded(&rule, remarks);
        }
    }
}

/// A rule with a wildcard says nothing about an excluded resource.
fn warn_of_excluded(rule: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
    if groups.texts().chain(resources.texts()).any(|name| name == "*") {
        return;
    }
    let mut told = BTreeSet::new();
    for group in groups.texts() {
        for resource in resources.texts() {
            if EXCLUDED.contains(&(group, resource)) && told.insert((group, resource)) {
                let text = "is excluded from admission webhooks; this rule will have no effect";
                remarks.on(rule, format_args!("{resource}.{group} {text}"));
            }
        }
    }
}

fn hooks(object: &ObjectMap, tolerated: Tolerated, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for hook in At::member(object, "webhooks").items() {
        one_hook(&hook, tolerated, errors);
        review_versions(&hook.get("admissionReviewVersions"), tolerated, errors);
        let name = hook.get("name");
        let repeated = !name.text().is_empty() && !names.insert(name.text());
        if repeated && !tolerated.repeated_names {
            errors.duplicate(&name, name.text());
        }
    }
}

fn one_hook(hook: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    qualified_name(&hook.get("name"), errors);
    for rule in hook.get("rules").items() {
        operations(&rule.get("operations"), errors);
        self::rule(&rule, errors);
    }
    // Each field with its default and its allowed values.
    let choices: [(&str, &'static str, &[&str]); 3] = [
        ("failurePolicy", "Fail", &["Fail", "Ignore"]),
        ("matchPolicy", "Equivalent", &["Equivalent", "Exact"]),
        ("reinvocationPolicy", "Never", &["IfNeeded", "Never"]),
    ];
    for (name, default, supported) in choices {
        let field = hook.get(name);
        errors.one_of(&field, field.opt_text().unwrap_or(default), supported);
    }
    let effects = hook.get("sideEffects");
    let allowed: &[&str] =
        if tolerated.side_effects { &["None", "NoneOnDryRun", "Some", "Unknown"] } else { &HARMLESS };
    match effects.opt_text() {
        None => errors.required(&effects, &format!("must specify one of {}", allowed.join(", "))),
        Some(text) => _ = errors.one_of(&effects, text, allowed),
    }
    let timeout = hook.get("timeoutSeconds");
    if timeout.opt_int().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&timeout, timeout.int(), why);
    }
    selector::validate(&hook.get("namespaceSelector"), errors);
    selector::validate(&hook.get("objectSelector"), errors);
    client(&hook.get("clientConfig"), errors);
    conditions(&hook.get("matchConditions"), &Admission::new(false), errors);
}

/// The rules of apimachinery's `IsFullyQualifiedName`.
fn qualified_name(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.text();
    let messages = dns1123_subdomain(name);
    if name.is_empty() {
        errors.required(at, "");
    } else if !messages.is_empty() {
        errors.invalid(at, name, &messages.join(","));
    } else if name.split('.').count() < 3 {
        errors.invalid(at, name, "should be a domain with at least three segments separated by dots");
    }
}

pub fn operations(list: &At<'_, '_>, errors: &mut Errors) {
    errors.present(list, "");
    wildcard_alone(list, "operations", errors);
    for operation in list.items() {
        errors.one_of(&operation, operation.text(), &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    }
}

fn wildcard_alone(list: &At<'_, '_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && list.texts().any(|text| text == "*") {
        errors.invalid(list, list.value(), &format!("if '*' is present, must not specify other {what}"));
    }
}

pub fn rule(rule: &At<'_, '_>, errors: &mut Errors) {
    for (name, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.get(name);
        errors.present(&list, "");
        wildcard_alone(&list, what, errors);
    }
    for version in rule.get("apiVersions").items().filter(|version| version.text().is_empty()) {
        errors.required(&version, "");
    }
    resources(&rule.get("resources"), errors);
    let scope = rule.get("scope");
    errors.one_of(&scope, scope.opt_text().unwrap_or("*"), &["*", "Cluster", "Namespaced"]);
}

fn resources(list: &At<'_, '_>, errors: &mut Errors) {
    errors.present(list, "");
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    // Upstream remembers only whether the last plain name was a wildcard.
    let (mut all, mut any, mut plain) = (false, false, false);
    for item in list.items() {
        let text = item.text();
        if text.is_empty() {
            errors.required(&item, "");
            continue;
        }
        all |= text == "*/*";
        any |= text == "*";
        let Some((resource, sub)) = text.split_once('/') else {
            plain = text != "*";
            continue;
        };
        if whole.contains(resource) {
            let why = format!("if '{resource}/*' is present, must not specify {text}");
            errors.invalid(&item, text, &why);
        }
        if everywhere.contains(sub) {
            errors.invalid(&item, text, &format!("if '*/{sub}' is present, must not specify {text}"));
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(sub);
        }
    }
    if list.len() > 1 && all {
        errors.invalid(list, list.value(), "if '*/*' is present, must not specify other resources");
    }
    if any && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(list, list.value(), why);
    }
}

fn review_versions(list: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    if list.is_empty() {
        return errors.required(list, "must specify one of v1, v1beta1");
    }
    let mut seen = BTreeSet::new();
    for version in list.items() {
        if !seen.insert(version.text()) {
            errors.invalid(&version, version.text(), "duplicate version");
            continue;
        }
        errors.in_format(&version, dns1035_label);
    }
    if !tolerated.unknown_reviews && !REVIEWS.iter().any(|known| seen.contains(known)) {
        errors.invalid(list, list.value(), "must include at least one of v1, v1beta1");
    }
}

pub fn client(at: &At<'_, '_>, errors: &mut Errors) {
    let (url, service) = (at.get("url"), at.get("service"));
    if url.is_set() == service.is_set() {
        errors.required(at, "exactly one of url or service is required");
    } else if let Some(text) = url.opt_text() {
        self::url(&url, text, errors);
    } else {
        self::service(&service, errors);
    }
}

/// Validates a URL, which may have a host and a path, and nothing else.
pub fn url(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    if let Some(why) = url_complaint(text) {
        let why = format!("url must be a valid URL: parse {}: {why}{form}", quote(text));
        return errors.required(at, &why);
    }
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let (scheme, rest) = if is_scheme { (scheme, &text[scheme.len() + 1..]) } else { ("", text) };
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        errors.invalid(at, &*scheme.to_lowercase(), &format!("'https' is the only allowed URL scheme{form}"));
    }
    if host.is_empty() {
        errors.invalid(at, host, &format!("host must be specified{form}"));
    }
    if let Some(user) = user {
        errors.invalid(at, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        errors.invalid(at, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        errors.invalid(at, query, "query parameters are not permitted in the URL");
    }
}

/// The error of `url.Parse` for a text whose first colon does not follow a scheme.
fn url_complaint(text: &str) -> Option<&'static str> {
    let path = text.split('?').next().unwrap_or_default();
    let (before, _) = path.split('/').next()?.split_once(':')?;
    let letters = before.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c));
    match before.chars().next() {
        None => Some("missing protocol scheme"),
        Some(first) if first.is_ascii_alphabetic() && letters.is_empty() => None,
        Some(_) => Some("first path segment in URL cannot contain colon"),
    }
}

pub fn service(at: &At<'_, '_>, errors: &mut Errors) {
    // Upstream passes name and namespace in the wrong order.
    for (field, place) in [("namespace", "name"), ("name", "namespace")] {
        if at.get(field).text().is_empty() {
            errors.required(&at.get(place), "");
        }
    }
    let port = at.get("port");
    let number = port.opt_int().unwrap_or(443);
    if !(1..=65535).contains(&number) {
        errors.invalid(&port, number, "port is not valid: must be between 1 and 65535, inclusive");
    }
    let path = at.get("path");
    let text = path.text();
    if matches!(text, "" | "/") {
        return;
    }
    if text == "//" {
        return errors.invalid(&path, text, "segment[0] may not be empty");
    }
    if !text.starts_with('/') {
        errors.invalid(&path, text, "must start with a '/'");
    }
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(&path, text, &format!("segment[{index}] may not be empty"));
        } else {
            for message in dns1123_subdomain(step) {
                errors.invalid(&path, text, &format!("segment[{index}]: {message}"));
            }
        }
    }
}

pub fn conditions(list: &At<'_, '_>, admission: &Admission, errors: &mut Errors) {
    errors.at_most(list, CONDITIONS);
    let mut names = BTreeSet::new();
    for condition in list.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        if expression.text().trim().is_empty() {
            errors.required(&expression, "");
        }
        admission.validate_trimmed(&expression, Purpose::Truth, errors);
        if name.text().is_empty() {
            errors.required(&name, "");
            continue;
        }
        errors.in_format(&name, label_key);
        errors.distinct_from(&name, &mut names);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Webhooks", "Number of webhooks.")
            .of(|object, _| list(&object["webhooks"]).len().into()),
        AGE,
    ],
    ..PLAIN
};
