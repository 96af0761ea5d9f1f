//! Descriptions of kinds: how a kind is served, and what the server does to its objects beyond the generic path.
//!
//! [`BuiltIn`] is the whole story of a built-in kind. All its fields have to be given, so that a kind without rules says
//! so. [`Behavior`] is the part of it that verbs ask, and that custom resources have too.

pub mod columns;
pub mod conversion;
pub mod declared;
pub mod definition;
pub mod deletion;
pub mod format;
pub mod gated_fields;
pub mod names;
pub mod part;
pub mod rules;
pub mod scale;
pub mod selectable;
pub mod strategy;
pub mod warnings;

use std::sync::Arc;

use columns::{Printer, TablePrinter};
use conversion::OtherVersion;
use declared::Declared;
use definition::Definition;
use part::Part;
use rules::Rules;
use scale::ScalePaths;
use selectable::SelectableFields;
use strategy::Strategy;
use warnings::{KindWarnings, finalizers};

use crate::causes::Cause;
use crate::fields::ObjectMap;
use crate::schema::kind::Kind;
use crate::schema::resource::ResourceDefinition;
use crate::tree::Text;

/// A group of built-in kinds.
pub struct Group {
    /// The name in URLs; empty for the core group.
    pub name: &'static str,
    /// The priority in discovery: upstream's priority of the group's APIService (kube-apiserver,
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
    /// Changes that a write makes to an object beside those that the client sent.
    pub strategy: Strategy,
    /// Validation rules for objects, beside those of [`BuiltIn::rules_of`].
    pub rules: Rules,
    /// Warnings about objects that are valid.
    pub warnings: KindWarnings,
    /// How tables show objects.
    pub columns: &'static Printer,
    /// Fields that field selectors may name.
    pub fields: fn() -> SelectableFields,
    /// Another version in which objects look different.
    pub other_version: Option<OtherVersion>,
}

impl BuiltIn {
    /// A kind of objects that are answered and never stored.
    pub const fn not_stored(definition: Definition) -> Self {
        Self::unstored(definition.not_stored())
    }

    /// A kind of objects that are found out when somebody reads them.
    pub const fn computed(definition: Definition) -> Self {
        Self::unstored(definition.computed())
    }

    /// The rules of the kind, with those that upstream declares at the fields of its type.
    pub fn rules_of(&self, kind: &Kind) -> Rules {
        kind.go().map_or(self.rules, |go| self.rules.with_declared(go.message))
    }

    const fn unstored(definition: Definition) -> Self {
        Self {
            definition,
            strategy: Strategy::PLAIN,
            rules: Rules::NONE,
            warnings: KindWarnings::NONE,
            columns: &columns::DEFAULT,
            fields: SelectableFields::metadata,
            other_version: None,
        }
    }
}

/// The part of a kind's description that verbs ask.
#[derive(Clone)]
pub struct Behavior {
    pub strategy: Strategy,
    pub rules: Rules,
    pub warnings: KindWarnings,
    pub columns: TablePrinter,
    pub fields: SelectableFields,
    pub other_version: Option<OtherVersion>,
    /// The warning of every request to a deprecated resource: that there is a better one.
    pub deprecation: Option<Text>,
    /// Paths to the fields of a custom resource that its Scale shows.
    pub scale: Option<Arc<ScalePaths>>,
}

impl Behavior {
    /// A built-in kind.
    pub fn built_in(kind: &BuiltIn, definition: &ResourceDefinition) -> Self {
        Self {
            strategy: kind.strategy.fitting(definition),
            rules: kind.rules_of(&definition.kind),
            warnings: kind.warnings,
            columns: TablePrinter::BuiltIn(kind.columns),
            fields: (kind.fields)(),
            other_version: kind.other_version,
            deprecation: kind.warnings.every_request.map(Text::new_static),
            scale: None,
        }
    }

    /// Errors of the fields in which a custom resource keeps its replicas, after a write to a part of an object.
    pub fn scale_causes(&self, part: Part, object: &ObjectMap) -> Vec<Cause> {
        let Some(paths) = &self.scale else { return Vec::new() };
        match part {
            Part::Main | Part::Scale => [paths.spec_causes(object), paths.status_causes(object)].concat(),
            Part::Status => paths.status_causes(object),
            _ => Vec::new(),
        }
    }

    /// A custom resource, whose schema says everything else.
    pub fn declared(definition: &ResourceDefinition, declared: Declared) -> Self {
        Self {
            strategy: Strategy::custom(definition),
            rules: Rules::NONE,
            warnings: KindWarnings::new(finalizers::of_new, finalizers::of_change),
            columns: declared.columns,
            fields: declared.fields,
            other_version: None,
            deprecation: declared.deprecation,
            scale: declared.scale,
        }
    }
}
