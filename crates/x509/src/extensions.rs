//! Extensions: statements of a certificate beyond its names and its key.

use std::collections::BTreeSet;

use crate::alternative_names::AlternativeNames;
use crate::constraints::NameConstraints;
use crate::der::{BOOLEAN, Der, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, constructed, context};
use crate::error::Error;

/// The prefix of extensions that X.509 defines.
const STANDARD: &[u8] = &[0x55, 0x1d];
const AUTHORITY_ACCESS: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 1, 1];
pub(crate) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
/// The bit of a key usage that lets a key sign certificates.
const CERT_SIGN: u16 = 1 << 5;

/// The extensions that verification asks for.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// Bit n is the flag n of RFC 5280; 0 if none is set, which limits nothing.
    pub(crate) key_usage: u16,
    pub(crate) basic_constraints: Option<BasicConstraints>,
    /// The names, and the extension's value.
    pub names: Option<AlternativeNames>,
    pub(crate) raw_names: Option<Vec<u8>>,
    pub(crate) constraints: Option<NameConstraints>,
    pub authority_key: Vec<u8>,
    pub subject_key: Vec<u8>,
    pub(crate) purposes: Vec<Vec<u8>>,
    pub(crate) policies: Policies,
    pub(crate) has_unhandled: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BasicConstraints {
    pub is_ca: bool,
    /// Authorities that may stand between this one and a leaf.
    pub longest_path: Option<u64>,
}

/// Object identifiers stand in their encoded form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    pub own: Vec<Vec<u8>>,
    pub mappings: Vec<(Vec<u8>, Vec<u8>)>,
    pub require_explicit: Option<u64>,
    pub inhibit_mapping: Option<u64>,
    pub inhibit_any: Option<u64>,
}

/// One extension as it stands in a certificate or a request.
pub(crate) struct Extension<'a> {
    pub oid: &'a [u8],
    pub is_critical: bool,
    pub value: &'a [u8],
}

/// Reads a list of extensions, each of which may stand there once.
pub(crate) fn list<'a>(mut list: Der<'a>, repeated: &str) -> Result<Vec<Extension<'a>>, Error> {
    let bad = |what: &str| Error::malformed(format!("malformed extension{what}"));
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    while !list.is_empty() {
        let mut one = list.read(SEQUENCE).ok_or_else(|| bad(""))?;
        let oid = one.oid().ok_or_else(|| bad(" OID field"))?;
        let is_critical = match one.peek(BOOLEAN) {
            true => one.boolean().ok_or_else(|| bad(" critical field"))?,
            false => false,
        };
        let value = one.read(OCTET_STRING).ok_or_else(|| bad(" value field"))?.0;
        if !seen.insert(oid) {
            let oid = crate::name::dotted(oid);
            return Err(Error::malformed(repeated.replace("OID", &format!("OID \"{oid}\""))));
        }
        found.push(Extension { oid, is_critical, value });
    }
    Ok(found)
}

impl Extensions {
    pub(crate) fn read(content: Der<'_>) -> Result<Self, Error> {
        let mut found = Self::default();
        for extension in list(content, "certificate contains duplicate extension with OID")? {
            let is_handled = found.add(&extension)?;
            found.has_unhandled |= extension.is_critical && !is_handled;
        }
        Ok(found)
    }

    pub(crate) fn may_sign_certificates(&self) -> bool {
        self.key_usage & CERT_SIGN != 0
    }

    /// Whether the extension is one that Go heeds.
    fn add(&mut self, extension: &Extension<'_>) -> Result<bool, Error> {
        let Extension { oid, is_critical, value } = extension;
        let value = Der(value);
        if *oid == AUTHORITY_ACCESS {
            authority_access(value, *is_critical)?;
            return Ok(true);
        }
        let Some([number]) = oid.strip_prefix(STANDARD) else { return Ok(false) };
        let invalid = |what: &str| Error::malformed(format!("invalid {what}"));
        match number {
            14 if *is_critical => {
                return Err(Error::malformed("subject key identifier incorrectly marked critical"));
            }
            14 => {
                let id = Der(value.0).read(OCTET_STRING);
                self.subject_key = id.ok_or_else(|| invalid("subject key identifier"))?.0.to_vec();
            }
            15 => {
                let bits = Der(value.0).bit_string().ok_or_else(|| invalid("key usage"))?;
                self.key_usage = (0..9).filter(|bit| bits.is_set(*bit)).map(|bit| 1 << bit).sum();
            }
            17 => {
                let names = AlternativeNames::read(value)?;
                let is_empty = names.is_empty();
                (self.names, self.raw_names) = (Some(names), Some(value.0.to_vec()));
                return Ok(!is_empty);
            }
            19 => self.basic_constraints = Some(basic_constraints(value)?),
            30 => {
                let (constraints, is_understood) = NameConstraints::read(value)?;
                self.constraints = Some(constraints);
                return Ok(is_understood);
            }
            31 => distribution_points(value)?,
            32 => self.policies.own = policies(value).ok_or_else(|| invalid("certificate policies"))?,
            33 => {
                self.policies.mappings =
                    mappings(value).ok_or_else(|| invalid("policy mappings extension"))?;
            }
            35 => self.authority_key = authority_key(value, *is_critical)?,
            36 => {
                let limits = policy_limits(value).ok_or_else(|| invalid("policy constraints extension"))?;
                (self.policies.require_explicit, self.policies.inhibit_mapping) = limits;
            }
            37 => self.purposes = purposes(value).ok_or_else(|| invalid("extended key usages"))?,
            54 => {
                let number = Der(value.0).small_integer();
                let number = number.ok_or_else(|| invalid("inhibit any policy extension"))?;
                self.policies.inhibit_any = u64::try_from(number).ok();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn basic_constraints(mut value: Der<'_>) -> Result<BasicConstraints, Error> {
    let invalid = || Error::malformed("invalid basic constraints");
    let mut fields = value.read(SEQUENCE).ok_or_else(invalid)?;
    let is_ca = if fields.peek(BOOLEAN) { fields.boolean().ok_or_else(invalid)? } else { false };
    let longest_path = match fields.peek(INTEGER) {
        true => {
            Some(fields.small_integer().and_then(|length| u64::try_from(length).ok()).ok_or_else(invalid)?)
        }
        false => None,
    };
    Ok(BasicConstraints { is_ca, longest_path })
}

fn authority_key(mut value: Der<'_>, is_critical: bool) -> Result<Vec<u8>, Error> {
    if is_critical {
        return Err(Error::malformed("authority key identifier incorrectly marked critical"));
    }
    let invalid = || Error::malformed("invalid authority key identifier");
    let mut fields = value.read(SEQUENCE).ok_or_else(invalid)?;
    let id = fields.optional(context(0)).ok_or_else(invalid)?;
    Ok(id.map(|id| id.0.to_vec()).unwrap_or_default())
}

fn purposes(mut value: Der<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = value.read(SEQUENCE)?;
    let mut found = Vec::new();
    while !list.is_empty() {
        found.push(list.oid()?.to_vec());
    }
    Some(found)
}

fn policies(mut value: Der<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = value.read(SEQUENCE)?;
    let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
    while !list.is_empty() {
        let policy = policy_oid(list.read(SEQUENCE)?.read(OBJECT_IDENTIFIER)?.0)?;
        if !found.insert(policy) {
            return None;
        }
    }
    Some(found.into_iter().collect())
}

/// Object identifiers of policies have parts of any size.
fn policy_oid(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_complete = bytes.last().is_some_and(|last| last & 0x80 == 0);
    let mut is_first = true;
    for byte in bytes {
        if is_first && *byte == 0x80 {
            return None;
        }
        is_first = byte & 0x80 == 0;
    }
    is_complete.then(|| bytes.to_vec())
}

fn mappings(mut value: Der<'_>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut list = value.read(SEQUENCE)?;
    let mut found = Vec::new();
    while !list.is_empty() {
        let mut pair = list.read(SEQUENCE)?;
        let (issuer, subject) = (pair.read(OBJECT_IDENTIFIER)?, pair.read(OBJECT_IDENTIFIER)?);
        found.push((issuer.0.to_vec(), subject.0.to_vec()));
    }
    Some(found)
}

/// After how many certificates a policy is needed, and after how many none is mapped. Negative numbers say nothing.
fn policy_limits(mut value: Der<'_>) -> Option<(Option<u64>, Option<u64>)> {
    let mut fields = value.read(SEQUENCE)?;
    let mut limit = |number: u8| -> Option<Option<u64>> {
        let Some(found) = fields.optional(context(number))? else { return Some(None) };
        // An integer with another tag.
        let number = Der(&crate::name::tagged(INTEGER, found.0)).small_integer()?;
        Some(u64::try_from(number).ok())
    };
    Some((limit(0)?, limit(1)?))
}

/// Checks what Go reads there; nothing is asked about revocation.
fn distribution_points(mut value: Der<'_>) -> Result<(), Error> {
    let invalid = || Error::malformed("invalid CRL distribution point");
    let mut list = value.read(SEQUENCE).ok_or_else(|| Error::malformed("invalid CRL distribution points"))?;
    while !list.is_empty() {
        let mut point = list.read(SEQUENCE).ok_or_else(invalid)?;
        let Some(mut name) = point.optional(constructed(0)).ok_or_else(invalid)? else { continue };
        let mut full = name.read(constructed(0)).ok_or_else(invalid)?;
        while full.peek(context(6)) {
            full.read(context(6)).ok_or_else(invalid)?;
        }
    }
    Ok(())
}

fn authority_access(mut value: Der<'_>, is_critical: bool) -> Result<(), Error> {
    if is_critical {
        return Err(Error::malformed("authority info access incorrectly marked critical"));
    }
    let invalid = || Error::malformed("invalid authority info access");
    let mut list = value.read(SEQUENCE).ok_or_else(invalid)?;
    while !list.is_empty() {
        let mut access = list.read(SEQUENCE).ok_or_else(invalid)?;
        access.oid().ok_or_else(invalid)?;
        access.optional(context(6)).ok_or_else(invalid)?;
    }
    Ok(())
}
