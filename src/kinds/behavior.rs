//! What there is to say about a kind: how it is served, and what the server does to its objects beyond the generic path.
//!
//! [`BuiltIn`] is the whole story of a built-in kind. All its fields have to be given, so that a kind without rules says
//! so. [`Behavior`] is the part of it that verbs ask, and that custom resources have too.

pub mod columns;
pub mod conversion;
pub mod definition;
pub mod deletion;
pub mod format;
pub mod gated_fields;
pub mod names;
pub mod part;
pub mod rules;
pub mod selectable;
pub mod strategy;
pub mod warnings;

use columns::Printer;
use conversion::OtherVersion;
use definition::Definition;
use rules::Rules;
use selectable::SelectableFields;
use strategy::Strategy;
use warnings::KindWarnings;

use crate::kinds::custom::CustomVersion;
use crate::schema::resource::ResourceDefinition;

/// A group of built-in kinds.
pub struct Group {
    /// As in URLs; empty for the core group.
    pub name: &'static str,
    /// Where discovery lists the group: upstream's priority of its APIService (kube-apiserver,
    /// `pkg/controlplane/apiserver/aggregator.go`). The aggregator's own group has none there and always comes first.
    pub priority: u32,
    pub versions: &'static [Version],
}

/// The kinds that are served in one version of a group.
pub struct Version {
    pub name: &'static str,
    pub kinds: &'static [&'static BuiltIn],
}

/// One kind in one version.
pub struct BuiltIn {
    /// How it is served.
    pub definition: Definition,
    /// What writes change of an object beside what the client sent.
    pub strategy: Strategy,
    /// What an object has to be.
    pub rules: Rules,
    /// What a client is told about objects that are valid.
    pub warnings: KindWarnings,
    /// How tables show objects.
    pub columns: &'static Printer,
    /// What field selectors may name.
    pub fields: fn() -> SelectableFields,
    /// Another version in which objects look different.
    pub other_version: Option<OtherVersion>,
}

impl BuiltIn {
    /// A kind of objects that are answered and never stored.
    pub const fn not_stored(definition: Definition) -> Self {
        Self {
            definition: definition.not_stored(),
            strategy: Strategy::PLAIN,
            rules: Rules::NONE,
            warnings: KindWarnings::NONE,
            columns: &columns::DEFAULT,
            fields: SelectableFields::metadata,
            other_version: None,
        }
    }
}

/// What verbs ask about a kind.
#[derive(Clone)]
pub struct Behavior {
    pub strategy: Strategy,
    pub rules: Rules,
    pub warnings: KindWarnings,
    pub columns: &'static Printer,
    pub fields: SelectableFields,
    pub other_version: Option<OtherVersion>,
}

impl Behavior {
    /// A built-in kind.
    pub fn built_in(kind: &BuiltIn, definition: &ResourceDefinition) -> Self {
        Self {
            strategy: kind.strategy.fitting(definition),
            rules: kind.rules,
            warnings: kind.warnings,
            columns: kind.columns,
            fields: (kind.fields)(),
            other_version: kind.other_version,
        }
    }

    /// A custom resource, whose schema says everything else; `version` is what its definition says of it.
    pub fn custom(definition: &ResourceDefinition, _version: Option<&CustomVersion>) -> Self {
        Self {
            strategy: Strategy::custom(definition),
            rules: Rules::NONE,
            warnings: KindWarnings::NONE,
            columns: &columns::DEFAULT,
            fields: SelectableFields::custom(definition.namespaced(), []),
            other_version: None,
        }
    }
}
