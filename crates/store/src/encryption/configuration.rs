//! The file of `--encryption-provider-config`: which resources are encrypted, by which providers, with which keys.

mod read;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::schema::names::GroupResource;

/// Stands for every group, or for every resource of a group.
pub const ANY: &str = "*";

/// The contents of the file, in its order.
#[derive(Debug)]
pub struct Configuration {
    pub entries: Vec<Entry>,
    /// The hash of the file in upstream's form.
    pub hash: String,
}

/// Resources that are encrypted alike.
#[derive(Debug)]
pub struct Entry {
    pub resources: Vec<GroupResource>,
    /// The first one writes, all of them read.
    pub providers: Vec<Provider>,
}

#[derive(Clone, Debug)]
pub enum Provider {
    /// Stores values as they are.
    Identity,
    Keys {
        kind: KeyKind,
        keys: Vec<Key>,
    },
    Kms(KmsConfiguration),
}

/// The ciphers whose keys are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    AesCbc,
    AesGcm,
    Secretbox,
}

#[derive(Clone)]
pub struct Key {
    pub name: String,
    pub secret: Vec<u8>,
}

/// A key management service of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsConfiguration {
    pub name: String,
    /// `unix:///path`.
    pub endpoint: String,
    pub timeout: Duration,
}

/// Whether the file is read again when it changes, which makes one rule stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    Yes,
    No,
}

impl KeyKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::AesCbc => "aescbc",
            Self::AesGcm => "aesgcm",
            Self::Secretbox => "secretbox",
        }
    }

    /// The permitted lengths of keys.
    fn lengths(self) -> &'static [usize] {
        match self {
            Self::AesCbc | Self::AesGcm => &[16, 24, 32],
            Self::Secretbox => &[32],
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name: {}, Secret: [REDACTED]", self.name)
    }
}

impl Configuration {
    /// Reads and checks the file; the error is upstream's text.
    pub fn load(path: &Path, reload: Reload) -> Result<Self, String> {
        let file = quoted(path);
        let text = std::fs::read(path).map_err(|error| {
            format!("error while parsing file: error while loading file: error reading encryption provider configuration file {file}: {error}")
        })?;
        Self::parse(&text, path, reload)
    }

    pub fn parse(text: &[u8], path: &Path, reload: Reload) -> Result<Self, String> {
        let file = quoted(path);
        let parsing = |why: String| format!("error while parsing file: {why}");
        if text.is_empty() {
            return Err(parsing(format!(
                "error while loading file: encryption provider configuration file {file} is empty"
            )));
        }
        let raw = read::document(text).map_err(|why| {
            parsing(format!("error decoding encryption provider configuration file {file}: {why}"))
        })?;
        let entries = rules::check(raw, reload).map_err(parsing)?;
        rules::refuse_masked(&entries).map_err(building)?;
        rules::refuse_first_version(&entries).map_err(building)?;
        let entries = entries.into_iter().map(rules::Checked::into_entry).collect();
        Ok(Self { entries, hash: hash_of(text) })
    }
}

/// The hash by which a change of the file is noticed.
pub fn hash_of(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    digest.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn building(why: String) -> String {
    format!("error while building transformers: {why}")
}

fn quoted(path: &Path) -> String {
    crate::gotext::quote(&path.display().to_string())
}

/// A resource as the file names it: `secrets`, `deployments.apps`, `*.`, `*.apps`, `*.*`.
fn group_resource(text: &str) -> GroupResource {
    let (plural, group) = text.split_once('.').unwrap_or((text, ""));
    GroupResource::new(group, plural)
}
