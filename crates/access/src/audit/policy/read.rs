//! Reads a policy file and checks it, in upstream's words.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::{GroupResources, Level, Policy, RequestAuditConfig, Rule, Stage, Stages};
use crate::codec::yaml;
use crate::gotext::quote;
use crate::kinds::behavior::format::dns1123_subdomain;

const GROUP_VERSION: &str = "audit.k8s.io/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    rules: Vec<FileRule>,
    #[serde(default)]
    omit_stages: Vec<String>,
    #[serde(default)]
    omit_managed_fields: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "a policy may have metadata, which means nothing")]
    metadata: Option<Json>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct FileRule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<FileResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Json>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FileResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Json>,
}

/// The policy, and the paths of its unknown fields.
pub fn policy(text: &[u8]) -> Result<(Policy, Vec<String>), String> {
    let value = yaml::parse(text).map_err(|why| format!("failed decoding: {why}"))?;
    let file: File =
        serde_json::from_str(&value.to_string()).map_err(|why| format!("failed decoding: {why}"))?;
    check_type(&file)?;
    let problems = problems(&file);
    match problems.as_slice() {
        [] if file.rules.is_empty() => return Err("loaded illegal policy with 0 rules".to_owned()),
        [] => {}
        [one] => return Err(one.clone()),
        several => return Err(format!("[{}]", several.join(", "))),
    }
    let unknown = unknown_fields(&file);
    let omitted = stages(&file.omit_stages);
    let rules = file.rules.into_iter().map(|rule| rule.compiled(omitted, file.omit_managed_fields));
    Ok((Policy { rules: rules.collect() }, unknown))
}

fn check_type(file: &File) -> Result<(), String> {
    let File { api_version, kind, .. } = file;
    match (kind.as_str(), api_version.as_str()) {
        ("", _) => Err("failed decoding: Object 'Kind' is missing in the policy".to_owned()),
        (_, "") => Err("failed decoding: Object 'apiVersion' is missing in the policy".to_owned()),
        ("Policy", GROUP_VERSION) => Ok(()),
        _ => Err(format!(
            "failed decoding: no kind {} is registered for version {}",
            quote(kind),
            quote(api_version)
        )),
    }
}

impl FileRule {
    fn compiled(self, omitted: Stages, omits_managed_fields: bool) -> Rule {
        let verdict = RequestAuditConfig {
            level: level(&self.level).unwrap_or(Level::None),
            omitted: omitted.union(stages(&self.omit_stages)),
            omits_managed_fields: self.omit_managed_fields.unwrap_or(omits_managed_fields),
        };
        let resources = self.resources.into_iter().map(|rule| GroupResources {
            group: rule.group,
            resources: rule.resources,
            names: rule.resource_names,
        });
        Rule {
            verdict,
            users: self.users,
            groups: self.user_groups,
            verbs: self.verbs,
            resources: resources.collect(),
            namespaces: self.namespaces,
            paths: self.paths,
        }
    }
}

fn level(text: &str) -> Option<Level> {
    Level::ALL.into_iter().find(|level| level.as_str() == text)
}

fn stage(text: &str) -> Option<Stage> {
    Stage::ALL.into_iter().find(|stage| stage.as_str() == text)
}

fn stages(names: &[String]) -> Stages {
    names.iter().filter_map(|name| stage(name)).collect()
}

fn problems(file: &File) -> Vec<String> {
    let mut problems = stage_problems(&file.omit_stages, "omitStages");
    for (index, rule) in file.rules.iter().enumerate() {
        let at = format!("rules[{index}]");
        problems.extend(level_problem(&rule.level, &at));
        problems.extend(path_problems(&rule.paths, &at));
        problems.extend(rule.resources.iter().flat_map(|resources| resource_problems(resources, &at)));
        problems.extend(stage_problems(&rule.omit_stages, &format!("{at}.omitStages")));
        if !rule.paths.is_empty() && (!rule.resources.is_empty() || !rule.namespaces.is_empty()) {
            problems.push(invalid(
                &format!("{at}.nonResourceURLs"),
                &list(&rule.paths),
                "rules cannot apply to both regular resources and non-resource URLs",
            ));
        }
    }
    problems
}

fn level_problem(text: &str, at: &str) -> Option<String> {
    if text.is_empty() {
        return Some(format!("{at}.level: Required value"));
    }
    if level(text).is_some() {
        return None;
    }
    let known: Vec<String> = Level::ALL.iter().map(|level| quote(level.as_str())).collect();
    Some(format!("{at}.level: Unsupported value: {}: supported values: {}", quote(text), known.join(", ")))
}

fn path_problems(paths: &[String], at: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, path) in paths.iter().enumerate().filter(|(_, path)| *path != "*") {
        let at = format!("{at}.nonResourceURLs[{index}]");
        if !path.starts_with('/') {
            problems.push(invalid(
                &at,
                &quote(path),
                "non-resource URL rules must begin with a '/' character",
            ));
        }
        if path.strip_suffix('*').unwrap_or(path).contains('*') {
            problems.push(invalid(
                &at,
                &quote(path),
                "non-resource URL wildcards '*' must be the final character of the rule",
            ));
        }
    }
    problems
}

/// Upstream's paths do not say which of a rule's resources is meant.
fn resource_problems(resources: &FileResources, at: &str) -> Vec<String> {
    let FileResources { group, resources: names, resource_names, .. } = resources;
    let mut problems = Vec::new();
    let why = if group.is_empty() || group == "*" { Vec::new() } else { dns1123_subdomain(group) };
    if !why.is_empty() {
        problems.push(invalid(&format!("{at}.resources.group"), &quote(group), &why.join(",")));
    }
    if !resource_names.is_empty() && names.is_empty() {
        problems.push(invalid(
            &format!("{at}.resources.resourceNames"),
            &list(resource_names),
            "using resourceNames requires at least one resource",
        ));
    }
    problems
}

fn stage_problems(names: &[String], at: &str) -> Vec<String> {
    let known = Stage::ALL.map(Stage::as_str).join(",");
    let wrong = names.iter().enumerate().filter(|(_, name)| stage(name).is_none());
    let problem = |(index, name): (usize, &String)| {
        invalid(&format!("{at}[{index}]"), &quote(name), &format!("allowed stages are {known}"))
    };
    wrong.map(problem).collect()
}

fn invalid(at: &str, value: &str, why: &str) -> String {
    format!("{at}: Invalid value: {value}: {why}")
}

/// A list as upstream's errors print it.
fn list(texts: &[String]) -> String {
    serde_json::to_string(texts).unwrap_or_default()
}

fn unknown_fields(file: &File) -> Vec<String> {
    let mut unknown: Vec<String> = file.unknown.keys().cloned().collect();
    for (index, rule) in file.rules.iter().enumerate() {
        unknown.extend(rule.unknown.keys().map(|key| format!("rules[{index}].{key}")));
        for (place, resources) in rule.resources.iter().enumerate() {
            let path = |key| format!("rules[{index}].resources[{place}].{key}");
            unknown.extend(resources.unknown.keys().map(path));
        }
    }
    unknown
}
