//! The compound names of the protocol, each parsed once where it comes in: a group and version, with a kind or a
//! plural.

use std::fmt;

use crate::tree::{Map, Text, Value};

/// A group-qualified plural such as `pods` or `deployments.apps`, as error messages show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// Empty for the core group.
    pub group: Text,
    pub plural: Text,
}

impl GroupResource {
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }

    /// The form in errors about one object; without a name, only the resource.
    pub fn named(&self, name: &str) -> String {
        if name.is_empty() { self.to_string() } else { format!("{self} \"{name}\"") }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, &self.plural, &self.group)
    }
}

/// A group-qualified kind such as `Pod` or `Deployment.apps`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: Text,
    pub kind: Text,
}

impl GroupKind {
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, &self.kind, &self.group)
    }
}

fn qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

/// A group and a version, spelled as an object's `apiVersion`: `v1`, `apps/v1`. Clones share the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    group: Text,
    api_version: Text,
}

/// The error of a text with more than one slash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct NoGroupVersion(String);

impl GroupVersion {
    /// `group` is empty for the core group.
    pub fn new(group: &str, version: &str) -> Self {
        let api_version =
            if group.is_empty() { version.into() } else { Text::from(format!("{group}/{version}")) };
        Self { group: group.into(), api_version }
    }

    /// A constant name. An apiVersion with two slashes does not compile.
    pub const fn fixed(api_version: &'static str) -> Self {
        let bytes = api_version.as_bytes();
        let (mut slash, mut at) = (0, 0);
        while at < bytes.len() {
            if bytes[at] == b'/' {
                assert!(slash == 0, "an apiVersion has one slash at most");
                slash = at;
            }
            at += 1;
        }
        let (group, _) = api_version.split_at(slash);
        Self { group: Text::new_static(group), api_version: Text::new_static(api_version) }
    }

    /// Parses an object's `apiVersion`.
    pub fn parse(api_version: &str) -> Result<Self, NoGroupVersion> {
        let group = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => {
                return Err(NoGroupVersion(api_version.to_owned()));
            }
            // `/v1` is another spelling of `v1`.
            Some(("", version)) => return Ok(Self { group: Text::default(), api_version: version.into() }),
            Some((group, _)) => group.into(),
            None => Text::default(),
        };
        Ok(Self { group, api_version: api_version.into() })
    }

    /// Empty for the core group.
    pub fn group(&self) -> &Text {
        &self.group
    }

    pub fn version(&self) -> &str {
        self.api_version.rsplit('/').next().unwrap_or_default()
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> &Text {
        &self.api_version
    }

    pub fn with_kind(&self, kind: impl Into<Text>) -> Gvk {
        Gvk { group_version: self.clone(), kind: kind.into() }
    }

    pub fn with_plural(&self, plural: impl Into<Text>) -> Gvr {
        Gvr { group_version: self.clone(), plural: plural.into() }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.api_version)
    }
}

/// Group, version and kind: the type that an object claims to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    pub group_version: GroupVersion,
    pub kind: Text,
}

impl Gvk {
    /// A constant name.
    pub const fn fixed(api_version: &'static str, kind: &'static str) -> Self {
        Self { group_version: GroupVersion::fixed(api_version), kind: Text::new_static(kind) }
    }

    /// Parses an object's `apiVersion` and `kind`.
    pub fn parse(api_version: &str, kind: &str) -> Result<Self, NoGroupVersion> {
        Ok(Self { group_version: GroupVersion::parse(api_version)?, kind: kind.into() })
    }

    pub fn group(&self) -> &Text {
        self.group_version.group()
    }

    pub fn version(&self) -> &str {
        self.group_version.version()
    }

    pub fn api_version(&self) -> &Text {
        self.group_version.api_version()
    }

    /// The members `kind` and `apiVersion` of an object of this kind, in upstream's order.
    pub fn claims(&self) -> [(Text, Value); 2] {
        let kind = (Text::new_static("kind"), Value::String(self.kind.clone()));
        [kind, (Text::new_static("apiVersion"), Value::String(self.api_version().clone()))]
    }

    /// The kind that an object claims; missing parts are empty.
    pub fn of(object: &Map) -> Result<Self, NoGroupVersion> {
        let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
        Self::parse(text("apiVersion"), text("kind"))
    }

    /// Whether an object claims to be of this kind.
    pub fn is_claimed_by(&self, object: &Map) -> bool {
        let says = |name: &str, what: &Text| object.get(name).is_some_and(|said| said == what.as_str());
        says("apiVersion", self.api_version()) && says("kind", &self.kind)
    }

    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group().clone(), kind: self.kind.clone() }
    }
}

/// Go's form: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(f, &self.group_version, "Kind", &self.kind)
    }
}

/// Group, version and plural, as in a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvr {
    pub group_version: GroupVersion,
    pub plural: Text,
}

impl Gvr {
    /// A constant name.
    pub const fn fixed(api_version: &'static str, plural: &'static str) -> Self {
        Self { group_version: GroupVersion::fixed(api_version), plural: Text::new_static(plural) }
    }

    pub fn group(&self) -> &Text {
        self.group_version.group()
    }

    pub fn version(&self) -> &str {
        self.group_version.version()
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group().clone(), plural: self.plural.clone() }
    }
}

/// Go's form: `apps/v1, Resource=deployments`, `/v1, Resource=pods`.
impl fmt::Display for Gvr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(f, &self.group_version, "Resource", &self.plural)
    }
}

fn named(f: &mut fmt::Formatter<'_>, of: &GroupVersion, what: &str, name: &str) -> fmt::Result {
    let slash = if of.api_version.contains('/') { "" } else { "/" };
    write!(f, "{slash}{of}, {what}={name}")
}

/// The Go package of upstream's own types of a group, as error messages show it.
pub fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    }
}
