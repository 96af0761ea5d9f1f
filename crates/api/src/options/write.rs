//! Options of create, update and patch.

use super::DryRun;
use super::query::Query;
use crate::causes::Cause;
use crate::causes::Causes;
use crate::error::Error;
use crate::gotext;
use crate::meta::managers::{FIELD_MANAGER_MAX, validate_manager};
use crate::patch::PatchKind;
use crate::patch::apply::ownership::Conflicts;
use crate::tree::{Map, json};

/// `CreateOptions`, `UpdateOptions` or `PatchOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The parameter as sent; see [`WriteOptions::or_agent`].
    pub field_manager: Option<String>,
    pub field_validation: FieldValidation,
    pub dry_run: DryRun,
    /// Always [`Conflicts::Refuse`] unless the write is an apply.
    pub conflicts: Conflicts,
    /// The options that the client has sent itself, as opposed to defaults.
    pub sent: Sent,
}

impl WriteOptions {
    /// The options of an apply that takes fields over from other managers.
    pub fn forced(manager: &str) -> Self {
        Self { field_manager: Some(manager.to_owned()), conflicts: Conflicts::Force, ..Self::default() }
    }
}

/// Flags of the options that a client has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub manager: bool,
    pub validation: bool,
}

/// The treatment of unknown and repeated fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl FieldValidation {
    fn as_str(self) -> &'static str {
        match self {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Warn => "Warn",
            FieldValidation::Strict => "Strict",
        }
    }
}

impl WriteOptions {
    /// Parses the `CreateOptions` of a POST.
    pub fn parse_create(query: &Query) -> Result<Self, Error> {
        Self::parse(query, "CreateOptions")
    }

    /// Parses the `UpdateOptions` of a PUT.
    pub fn parse_update(query: &Query) -> Result<Self, Error> {
        Self::parse(query, "UpdateOptions")
    }

    /// The manager of the fields that are written. Only the server itself writes without a name.
    pub fn manager(&self) -> &str {
        self.field_manager.as_deref().unwrap_or("kube-apiserver")
    }

    /// Sets the manager of a client that has named none: the product in its User-Agent (apiserver
    /// `managerOrUserAgent`).
    pub fn or_agent(mut self, user_agent: Option<&str>) -> Self {
        self.field_manager.get_or_insert_with(|| match product(user_agent.unwrap_or_default()) {
            product if product.is_empty() => "unknown".to_owned(),
            product => product,
        });
        self
    }

    fn parse(query: &Query, kind: &str) -> Result<Self, Error> {
        let mut causes = Vec::new();
        let options = Self::validate(query, &mut causes);
        if causes.is_empty() { Ok(options) } else { Err(Error::invalid_options(kind, causes)) }
    }

    fn validate(query: &Query, causes: &mut Vec<Cause>) -> Self {
        let manager = query.text("fieldManager");
        let mut of_manager = Causes::default();
        validate_manager("fieldManager", manager, &mut of_manager);
        causes.extend(of_manager.into_vec());
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        Self {
            field_manager: (!manager.is_empty()).then(|| manager.to_owned()),
            dry_run: DryRun::validate(&dry_run, causes),
            field_validation: validation(query.text("fieldValidation"), causes),
            conflicts: Conflicts::Refuse,
            sent: Sent {
                manager: !manager.is_empty(),
                validation: !query.text("fieldValidation").is_empty(),
            },
        }
    }

    /// Puts the options that the client sent into an object, as upstream's type prints them.
    pub fn print(&self, into: &mut Map) {
        if self.dry_run == DryRun::Yes {
            into.insert("dryRun", json!(["All"]));
        }
        if let (true, Some(manager)) = (self.sent.manager, &self.field_manager) {
            into.insert("fieldManager", manager.as_str().into());
        }
        if self.sent.validation {
            into.insert("fieldValidation", self.field_validation.as_str().into());
        }
    }

    /// Parses the `PatchOptions` of a PATCH.
    pub fn parse_patch(query: &Query, patch: PatchKind) -> Result<Self, Error> {
        let mut causes = Vec::new();
        let force = query.flag("force");
        if patch == PatchKind::Apply {
            if query.text("fieldManager").is_empty() {
                causes.push(Cause::required("fieldManager", "is required for apply patch"));
            }
        } else if force.is_some() {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        let options = Self::validate(query, &mut causes);
        if !causes.is_empty() {
            return Err(Error::invalid_options("PatchOptions", causes));
        }
        let conflicts = if force == Some(true) { Conflicts::Force } else { Conflicts::Refuse };
        Ok(Self { conflicts, ..options })
    }
}

fn validation(text: &str, causes: &mut Vec<Cause>) -> FieldValidation {
    match text {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            causes.push(Cause::not_supported("fieldValidation", gotext::quote(other), &supported));
            FieldValidation::Warn
        }
    }
}

fn product(user_agent: &str) -> String {
    let mut manager = String::new();
    let product = user_agent.split('/').next().unwrap_or_default();
    for c in product.chars().filter(|c| gotext::is_printable(*c)) {
        if manager.len() + c.len_utf8() > FIELD_MANAGER_MAX {
            break;
        }
        manager.push(c);
    }
    manager
}
