//! Name constraints: for which names an authority may sign (RFC 5280, 4.2.1.10, as Go reads it).

use std::net::IpAddr;

use crate::alternative_names::AlternativeNames;
use crate::der::{Der, SEQUENCE, constructed, context};
use crate::domain::domain_is_valid;
use crate::error::Error;

/// The names that an authority may sign for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameConstraints {
    permitted: Subtrees,
    excluded: Subtrees,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Subtrees {
    dns: Vec<String>,
    emails: Vec<String>,
    uris: Vec<String>,
    addresses: Vec<Network>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Network {
    address: Vec<u8>,
    mask: Vec<u8>,
}

/// A mail address: what stands before the last `@`, without quotes, and the domain in lower case.
#[derive(PartialEq, Eq)]
pub(crate) struct Mailbox {
    local: Vec<u8>,
    domain: String,
}

impl NameConstraints {
    /// Reads the extension, and whether it holds only names of the four sorts that are compared.
    pub fn read(mut value: Der<'_>) -> Result<(Self, bool), Error> {
        let invalid = || Error::malformed("invalid NameConstraints extension");
        let mut fields = value.read(SEQUENCE).filter(|_| value.is_empty()).ok_or_else(invalid)?;
        let permitted = fields.optional(constructed(0)).ok_or_else(invalid)?.unwrap_or(Der(&[]));
        let excluded = fields.optional(constructed(1)).ok_or_else(invalid)?.unwrap_or(Der(&[]));
        if !fields.is_empty() {
            return Err(invalid());
        }
        if permitted.is_empty() && excluded.is_empty() {
            return Err(Error::malformed("empty name constraints extension"));
        }
        let mut is_understood = true;
        let permitted = Subtrees::read(permitted, &mut is_understood)?;
        let excluded = Subtrees::read(excluded, &mut is_understood)?;
        Ok((Self { permitted, excluded }, is_understood))
    }

    pub(super) fn check(
        &self,
        names: &AlternativeNames,
        emails: &[(String, Mailbox)],
        uris: &[(String, String)],
    ) -> Result<(), String> {
        let (permitted, excluded) = (&self.permitted, &self.excluded);
        for address in &names.addresses {
            let within = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
            let has_rule = !permitted.addresses.is_empty();
            let rule = (has_rule && !within(&permitted.addresses), within(&excluded.addresses));
            refuse("IP address", &address.to_string(), rule)?;
        }
        for name in &names.dns {
            if !domain_is_valid(name, false) {
                return Err(format!("x509: cannot parse dnsName {name:?}"));
            }
            refuse("DNS name", name, domain_rule(&permitted.dns, &excluded.dns, name))?;
        }
        for (uri, host) in uris {
            refuse("URI", uri, domain_rule(&permitted.uris, &excluded.uris, host))?;
        }
        for (text, mailbox) in emails {
            if !domain_is_valid(&mailbox.domain, false) {
                return Err(format!("x509: cannot parse rfc822Name {text:?}"));
            }
            let has_rule = !permitted.emails.is_empty();
            let allowed = covers_mailbox(&permitted.emails, mailbox, covers);
            let forbidden = covers_mailbox(&excluded.emails, mailbox, covers_or_meets);
            refuse("email address", text, (has_rule && !allowed, forbidden))?;
        }
        Ok(())
    }
}

/// `rule` is whether the name is not permitted, and whether it is excluded.
fn refuse(kind: &str, name: &str, rule: (bool, bool)) -> Result<(), String> {
    match rule {
        (true, _) => Err(format!("{kind} {name:?} is not permitted by any constraint")),
        (false, true) => Err(format!("{kind} {name:?} is excluded by constraint")),
        (false, false) => Ok(()),
    }
}

fn domain_rule(permitted: &[String], excluded: &[String], name: &str) -> (bool, bool) {
    let is_missing = !permitted.is_empty() && !permitted.iter().any(|constraint| covers(constraint, name));
    (is_missing, excluded.iter().any(|constraint| covers_or_meets(constraint, name)))
}

/// Whether a domain is a constraint's or below it; below it only, if the constraint begins with a dot.
fn covers(constraint: &str, name: &str) -> bool {
    if constraint.is_empty() {
        return true;
    }
    let Some(start) = name.len().checked_sub(constraint.len()) else { return false };
    let (constraint, name) = (constraint.as_bytes(), name.as_bytes());
    name[start..].eq_ignore_ascii_case(constraint)
        && (constraint[0] == b'.' || start == 0 || name[start - 1] == b'.')
}

/// Whether a constraint covers a domain, or one of those that a wildcard stands for.
fn covers_or_meets(constraint: &str, name: &str) -> bool {
    let parent = |name: &str| name.find('.').map(|dot| name[dot..].to_ascii_lowercase());
    covers(constraint, name)
        || (name.starts_with('*') && parent(name).is_some() && parent(name) == parent(constraint))
}

fn covers_mailbox(constraints: &[String], mailbox: &Mailbox, covers: fn(&str, &str) -> bool) -> bool {
    constraints.iter().any(|constraint| match constraint.contains('@') {
        true => Mailbox::parse(constraint).as_ref() == Some(mailbox),
        false => covers(constraint, &mailbox.domain),
    })
}

impl Network {
    fn contains(&self, address: &IpAddr) -> bool {
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let is_same = |((own, mask), other): ((&u8, &u8), &u8)| own & mask == other & mask;
        bytes.len() == self.address.len() && self.address.iter().zip(&self.mask).zip(&bytes).all(is_same)
    }

    fn read(value: &[u8]) -> Result<Self, Error> {
        if value.len() != 8 && value.len() != 32 {
            let length = value.len();
            return Err(Error::malformed(format!("IP constraint contained value of length {length}")));
        }
        let (address, mask) = value.split_at(value.len() / 2);
        let ones: u32 = mask.iter().map(|byte| byte.leading_ones()).sum();
        let set: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
        let is_mask = ones == set && mask.is_sorted_by(|one, next| *one == 0xff || *next == 0);
        if !is_mask {
            return Err(Error::malformed("IP constraint contained invalid mask"));
        }
        Ok(Self { address: address.to_vec(), mask: mask.to_vec() })
    }
}

impl Subtrees {
    fn read(mut list: Der<'_>, is_understood: &mut bool) -> Result<Self, Error> {
        let invalid = || Error::malformed("invalid NameConstraints extension");
        let mut found = Self::default();
        while !list.is_empty() {
            let base = list.read(SEQUENCE).and_then(|mut subtree| subtree.any()).ok_or_else(invalid)?;
            if base.tag == context(7) {
                found.addresses.push(Network::read(base.content)?);
                continue;
            }
            let (kind, is_domain_only) = match base.tag {
                tag if tag == context(2) => (&mut found.dns, true),
                tag if tag == context(1) => (&mut found.emails, false),
                tag if tag == context(6) => (&mut found.uris, true),
                _ => {
                    *is_understood = false;
                    continue;
                }
            };
            let text = std::str::from_utf8(base.content).ok().filter(|text| text.is_ascii());
            let text = text.ok_or_else(|| Error::malformed("invalid constraint value"))?;
            let is_valid = match text.contains('@') && !is_domain_only {
                true => Mailbox::parse(text).is_some(),
                false => domain_is_valid(text, true),
            };
            let is_address = base.tag == context(6) && text.parse::<IpAddr>().is_ok();
            if !is_valid || is_address {
                return Err(Error::malformed(format!("failed to parse name constraint {text:?}")));
            }
            kind.push(text.to_owned());
        }
        Ok(found)
    }
}

impl Mailbox {
    /// Reads an address of RFC 2821.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (local, rest) = if bytes.first()? == &b'"' { quoted(&bytes[1..])? } else { atoms(bytes)? };
        let domain = std::str::from_utf8(rest.strip_prefix(b"@")?).ok()?;
        let is_label =
            |label: &str| !label.is_empty() && label.bytes().all(|byte| (33..=126).contains(&byte));
        if !domain.is_empty() && !domain.split('.').all(is_label) {
            return None;
        }
        Some(Self { local, domain: domain.to_ascii_lowercase() })
    }
}

/// A quoted local part behind its first quote, and what follows its last one.
fn quoted(mut text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut local = Vec::new();
    loop {
        let (&byte, rest) = text.split_first()?;
        text = rest;
        match byte {
            b'"' => return Some((local, text)),
            b'\\' => {
                let (&escaped, rest) = text.split_first()?;
                if !matches!(escaped, 1..=9 | 11 | 12 | 14..=127) {
                    return None;
                }
                local.push(escaped);
                text = rest;
            }
            1..=8 | 11 | 12 | 14..=33 | 35..=91 | 93..=127 => local.push(byte),
            _ => return None,
        }
    }
}

/// A local part without quotes, and what follows it.
fn atoms(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut local, mut rest) = (Vec::new(), text);
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match byte {
            b'\\' => after.split_first().map(|(byte, after)| (*byte, after))?,
            _ if byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte) => (byte, after),
            _ => break,
        };
        local.push(byte);
        rest = after;
    }
    let has_empty = local.split(|byte| *byte == b'.').any(<[u8]>::is_empty);
    (!has_empty).then_some((local, rest))
}
