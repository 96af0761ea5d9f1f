//! Warnings about files of one volume with the same or overlapping paths.

use crate::gotext::quote;
use crate::kinds::behavior::warnings::MOST_COMPARED;
use crate::kinds::prelude::*;

/// A file and its source.
#[derive(Clone, PartialEq)]
struct File<'v> {
    path: &'v str,
    source: String,
}

impl File<'_> {
    fn shown(&self) -> String {
        let path = quote(self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    fn overlaps(&self, other: &Self) -> bool {
        if self.path.is_empty() || other.path.is_empty() {
            return false;
        }
        self == other || lies_in(self.path, other.path) || lies_in(other.path, self.path)
    }
}

/// Whether the first path is the second one or below it.
fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub fn volumes(volumes: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    for volume in volumes.items() {
        let name = volume.get("name").text();
        for (member, label, named) in [
            ("configMap", "ConfigMap ", "name"),
            ("secret", "Secret ", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let source = volume.get(member);
            if source.get("items").len() > 1 {
                let what = match named {
                    "" => label.to_owned(),
                    _ => format!("{label}{}", quote(source.get(named).text())),
                };
                listed(name, &what, files(&source, String::new()), remarks);
            }
        }
        if volume.get("projected").is_set() {
            projected(name, &volume.dig(&["projected", "sources"]), remarks);
        }
    }
}

fn listed<'v>(
    volume: &str,
    what: &str,
    files: impl Iterator<Item = File<'v>>,
    remarks: &mut Remarks<'_>,
) -> Vec<File<'v>> {
    let mut seen = Vec::new();
    add(volume, what, files, &mut seen, remarks);
    seen
}

fn add<'v>(
    volume: &str,
    what: &str,
    files: impl Iterator<Item = File<'v>>,
    seen: &mut Vec<File<'v>>,
    remarks: &mut Remarks<'_>,
) {
    for file in files {
        if remarks.are_enough() {
            return;
        }
        remarks.compare(seen.len().min(MOST_COMPARED));
        for other in seen.iter().take(MOST_COMPARED).filter(|other| file.overlaps(other)) {
            let volume = quote(volume);
            let (file, other) = (file.shown(), other.shown());
            remarks.say(format!("volume {volume} ({what}): overlapping paths: {file} with {other}"));
        }
        seen.push(file);
    }
}

fn projected(volume: &str, sources: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let mut seen = Vec::new();
    for source in sources.items() {
        if !source.value().as_object().into_iter().flatten().any(|(_, value)| !value.is_null()) {
            remarks.say(format!("volume {} (Projected) has no sources provided", quote(volume)));
            continue;
        }
        add(volume, "Projected", projection(&source).into_iter(), &mut seen, remarks);
    }
}

/// The files of one source of a projected volume.
fn projection<'v>(source: &At<'v, '_>) -> Vec<File<'v>> {
    for (member, label) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let from = source.get(member);
        if from.get("items").is_set() {
            let name = quote(from.get("name").text());
            return files(&from, format!("{label} {name}")).collect();
        }
    }
    let downward = source.get("downwardAPI");
    if downward.get("items").is_set() {
        return files(&downward, "DownwardAPI".to_owned()).collect();
    }
    let (token, bundle) = (source.get("serviceAccountToken"), source.get("clusterTrustBundle"));
    if token.is_set() {
        return vec![file(token.get("path").text(), "ServiceAccountToken".to_owned())];
    }
    if bundle.is_set() {
        let name = bundle.get("name").opt_text().unwrap_or_else(|| bundle.get("signerName").text());
        return vec![file(bundle.get("path").text(), format!("ClusterTrustBundle {}", quote(name)))];
    }
    let certificate = source.get("podCertificate");
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let given = parts.map(|(member, label)| (certificate.get(member).text(), label));
    given
        .into_iter()
        .filter(|(path, _)| !path.is_empty())
        .map(|(path, label)| file(path, label.to_owned()))
        .collect()
}

fn files<'v>(source: &At<'v, '_>, label: String) -> impl Iterator<Item = File<'v>> + use<'v> {
    let paths: Vec<&'v str> = source.get("items").items().map(|item| item.get("path").text()).collect();
    paths.into_iter().map(move |path| file(path, label.clone()))
}

fn file(path: &str, source: String) -> File<'_> {
    File { path: path.trim_end_matches('/'), source }
}
