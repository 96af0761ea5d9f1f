//! Descriptions of operations, in upstream's words (apiserver `registerResourceHandlers`).

use crate::schema::resource::{Origin, ResourceDefinition, Verb};

/// The description of a verb on a kind, or on a subresource of it.
pub(super) fn operation(definition: &ResourceDefinition, verb: Verb, sub: &str) -> String {
    let kind = definition.kind_name();
    let part = if sub.is_empty() { String::new() } else { format!("{sub} of ") };
    let the = || format!("{part}the specified {kind}");
    match verb {
        Verb::Get => format!("read {}", the()),
        Verb::List if definition.allows(Verb::Watch) && definition.origin == Origin::BuiltIn => {
            format!("list or watch objects of kind {kind}")
        }
        Verb::List => format!("list objects of kind {kind}"),
        Verb::Watch => format!("watch objects of kind {kind}"),
        Verb::Create => format!("create {part}{}", with_article(kind)),
        Verb::Update => format!("replace {}", the()),
        Verb::Patch => format!("partially update {}", the()),
        Verb::Delete => format!("delete {part}{}", with_article(kind)),
        Verb::DeleteCollection => format!("delete collection of {kind}"),
    }
}

/// The description of a method on a subresource that connects.
pub(super) fn connection(definition: &ResourceDefinition, method: &str, sub: &str) -> String {
    format!("connect {} requests to {sub} of {}", method.to_uppercase(), definition.kind_name())
}

/// The kind with its article. Plurals have none.
fn with_article(kind: &str) -> String {
    let plural = kind.ends_with('s') && !kind.ends_with("ss");
    match kind.chars().next().map(|first| first.to_ascii_lowercase()) {
        _ if plural => kind.to_owned(),
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::built_in;

    #[test]
    fn what_upstream_says() {
        let definitions = built_in::definitions();
        let cases = [
            ("Pod", Verb::Get, "", "read the specified Pod"),
            ("Pod", Verb::Create, "", "create a Pod"),
            ("Pod", Verb::Create, "eviction", "create eviction of a Pod"),
            ("Endpoints", Verb::Delete, "", "delete Endpoints"),
            ("Ingress", Verb::Create, "", "create an Ingress"),
            ("StorageClass", Verb::Delete, "", "delete a StorageClass"),
            ("Node", Verb::List, "", "list or watch objects of kind Node"),
            ("Deployment", Verb::Patch, "scale", "partially update scale of the specified Deployment"),
            ("Deployment", Verb::Update, "", "replace the specified Deployment"),
            ("Lease", Verb::DeleteCollection, "", "delete collection of Lease"),
        ];
        for (kind, verb, sub, want) in cases {
            let definition =
                definitions.iter().find(|definition| definition.kind_name() == kind).expect(kind);
            assert_eq!(operation(definition, verb, sub), want);
        }
    }
}
