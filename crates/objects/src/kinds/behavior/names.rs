//! The demands that kinds make on the names of their objects.

use crate::kinds::behavior::format;

/// The format that a kind demands of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFormat {
    /// Kinds whose rules judge names more strictly than any of these formats, in words of their own.
    OfRules,
    /// RBAC and other kinds whose names carry colons.
    PathSegment,
    /// Most kinds, and all custom resources.
    Dns1123Subdomain,
    /// The same, in the words of upstream's declared rules, which judge no prefix but the name made of it.
    LongName,
    Dns1123Label,
    Dns1035Label,
}

impl NameFormat {
    /// Errors of a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            NameFormat::OfRules => Vec::new(),
            NameFormat::PathSegment => format::path_segment(name),
            NameFormat::Dns1123Subdomain => format::dns1123_subdomain(name),
            NameFormat::LongName => format::long_name(name),
            NameFormat::Dns1123Label => format::dns1123_label(name),
            NameFormat::Dns1035Label => format::dns1035_label(name),
        }
    }

    /// Errors of a prefix of generated names, which may end in a dash.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match (self, prefix.strip_suffix('-')) {
            (NameFormat::OfRules | NameFormat::LongName, _) => Vec::new(),
            (NameFormat::PathSegment, _) => format::path_segment_prefix(prefix),
            (_, Some(stem)) if !stem.is_empty() => self.check(&format!("{stem}a")),
            _ => self.check(prefix),
        }
    }
}
