//! Definitions that projects publish, and their own objects of these.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rowplane::codec::yaml;
use serde_json::Value;

use super::{DEFINITIONS, condition};
use crate::support::optional;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    custom_resources_101_manifests_of_projects,
}

struct Project {
    /// The folder of its module.
    name: &'static str,
    definitions: &'static str,
    objects: &'static [&'static str],
    /// How many of each are found, and how many objects are accepted: the others are wrong on purpose, or older than these
    /// definitions. A kube-apiserver of 1.36.3 gave the same answers to the same requests, their texts included (2026-11-26).
    found: Found,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    definitions: usize,
    objects: usize,
    accepted: usize,
}

const PROJECTS: [Project; 5] = [
    Project {
        name: "cert-manager",
        definitions: "deploy/crds",
        objects: &["test/fixtures"],
        found: Found { definitions: 6, objects: 3, accepted: 3 },
    },
    Project {
        name: "gateway-api",
        definitions: "config/crd/experimental",
        objects: &["examples", "hack/invalid-examples", "conformance/tests"],
        found: Found { definitions: 12, objects: 305, accepted: 268 },
    },
    Project {
        name: "crossplane",
        definitions: "cluster/crds",
        objects: &["cluster/composition", "test/e2e/manifests"],
        found: Found { definitions: 21, objects: 155, accepted: 129 },
    },
    Project {
        name: "argo-cd",
        definitions: "manifests/crds",
        objects: &[
            "applicationset/examples",
            "test/e2e/testdata",
            "resource_customizations/argoproj.io/ApplicationSet",
        ],
        found: Found { definitions: 3, objects: 53, accepted: 44 },
    },
    Project {
        name: "prometheus-operator",
        definitions: "example/prometheus-operator-crd",
        objects: &["example", "test/framework/resources"],
        found: Found { definitions: 10, objects: 26, accepted: 25 },
    },
];

async fn custom_resources_101_manifests_of_projects(setup: Setup) {
    let Some(modules) = optional::program("get-published", "manifests of projects").await else { return };
    let server = setup.start().await;
    for project in PROJECTS {
        let root = modules.join(project.name);
        let mut found = Found::default();
        let mut served = BTreeMap::new();
        for definition in documents(&root.join(project.definitions)) {
            if definition["kind"] != "CustomResourceDefinition" {
                continue;
            }
            let made = server.post(DEFINITIONS, &definition).await.expect(201);
            assert!(condition(&made, "Established").starts_with("True"), "{made}");
            served.extend(paths(&definition));
            found.definitions += 1;
        }
        let mut seen = BTreeSet::new();
        for object in project.objects.iter().flat_map(|folder| documents(&root.join(folder))) {
            let kind = (text(&object["apiVersion"]), text(&object["kind"]));
            let Some(path) = served.get(&kind).filter(|_| seen.insert(object.to_string())) else { continue };
            found.objects += 1;
            found.accepted += usize::from(is_accepted(&server, path, object).await);
        }
        assert_eq!(found, project.found, "{}", project.name);
    }
}

/// Where objects are created, by version and kind.
fn paths(definition: &Value) -> impl Iterator<Item = ((String, String), String)> {
    let spec = &definition["spec"];
    let (group, names) = (text(&spec["group"]), &spec["names"]);
    let within = if spec["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
    let versions = spec["versions"].as_array().expect("versions").iter();
    versions.filter(|version| version["served"] == true).map(move |version| {
        let version = format!("{group}/{}", text(&version["name"]));
        let path = format!("/apis/{version}{within}/{}", text(&names["plural"]));
        ((version, text(&names["kind"])), path)
    })
}

/// Whether the server would create the object, which may be one of any namespace.
async fn is_accepted(server: &TestServer, path: &str, mut object: Value) -> bool {
    object["metadata"].as_object_mut().expect("metadata").remove("namespace");
    let answer = server.post(format!("{path}?dryRun=All"), &object).await;
    assert!([201, 400, 422].contains(&answer.status), "{object}: {answer:?}");
    answer.status == 201
}

/// The documents in a folder's files that are objects; templates are no YAML.
fn documents(folder: &Path) -> Vec<Value> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let documents = texts.flat_map(|text| {
        text.split("\n---")
            .map(|part| yaml::parse(part.trim_start_matches("---").as_bytes()))
            .collect::<Vec<_>>()
    });
    let values = documents.filter_map(Result::ok).filter_map(|document| serde_json::to_value(document).ok());
    values.filter(|document| document["metadata"].is_object()).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.extension().and_then(|end| end.to_str()) {
            _ if path.is_dir() => collect(&path, files),
            Some("yaml" | "yml") => files.push(path),
            _ => {}
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
