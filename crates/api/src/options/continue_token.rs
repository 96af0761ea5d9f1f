//! The token between two pages of a list: opaque, self-contained, authenticated.
//!
//! It is unpadded url-safe base64 of `format version (1 byte) | key id (4) | revision (8) | remaining (8) | namespace
//! length (2) | namespace | name | HMAC-SHA-256 (32)`, integers big-endian. The MAC also covers the scope, which is not
//! part of the token: a token of another resource or namespace is refused like a forged one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::Error;
use crate::revision::Revision;
use crate::schema::names::GroupResource;

const FORMAT: u8 = 1;
const MAC_LENGTH: usize = 32;
/// The number that stands for none: for the revision "latest", for the remainder "unknown".
const NONE: u64 = u64::MAX;

/// The place at which a list continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    pub at: PageAt,
    /// The last key of the previous page.
    pub after: LastKey,
    /// How many objects follow [`ContinueToken::after`] in the snapshot, if that is known.
    pub remaining: Option<u64>,
}

/// The snapshot from which the next page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAt {
    Revision(Revision),
    /// The newest data. Such a token is handed out with a 410; its list is not consistent any more.
    Latest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastKey {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

/// The list for which a token is valid.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub resource: &'a GroupResource,
    /// `None` for a list over all namespaces or of a cluster-scoped resource.
    pub namespace: Option<&'a str>,
    /// The revision of the door to the past through which the list was asked for; `None` for the present.
    pub door: Option<Revision>,
    /// The parameter that orders the list; empty for the order of keys.
    pub order: &'a str,
}

/// The secrets that sign tokens: the newest signs, and all of them verify, so that keys can be rotated.
#[derive(Clone)]
pub struct TokenKeys {
    newest: TokenKey,
    older: Vec<TokenKey>,
}

/// One secret. Tokens contain the key's id, so an id must not be used twice.
#[derive(Clone)]
pub struct TokenKey {
    pub id: u32,
    /// The secret of at least 32 random bytes.
    pub secret: Vec<u8>,
}

impl ContinueToken {
    /// The revision of the snapshot; `None` for the newest data.
    pub fn revision(&self) -> Option<Revision> {
        match self.at {
            PageAt::Revision(revision) => Some(revision),
            PageAt::Latest => None,
        }
    }
}

impl TokenKeys {
    pub fn new(newest: TokenKey, older: Vec<TokenKey>) -> Self {
        Self { newest, older }
    }

    /// The token's text. Fails only for a namespace that is longer than any valid one.
    pub fn encode(&self, token: &ContinueToken, scope: Scope<'_>) -> Result<String, Error> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.newest.id.to_be_bytes());
        bytes.extend(match token.at {
            PageAt::Revision(revision) => revision.0.to_be_bytes(),
            PageAt::Latest => NONE.to_be_bytes(),
        });
        bytes.extend(token.remaining.unwrap_or(NONE).to_be_bytes());
        let namespace = token.after.namespace.as_bytes();
        let length = u16::try_from(namespace.len())
            .map_err(|_| Error::Internal("namespace too long for a continue token".to_owned()))?;
        bytes.extend(length.to_be_bytes());
        bytes.extend(namespace);
        bytes.extend(token.after.name.as_bytes());
        let tag = self.newest.mac(&bytes, scope)?.finalize().into_bytes();
        bytes.extend(tag);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Whether the key is known that a token names. True for what is no token.
    pub fn may_read(&self, text: &str) -> bool {
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        match bytes.split_first() {
            Some((&FORMAT, rest)) => Reader(rest).u32().is_none_or(|id| self.find(id).is_some()),
            _ => true,
        }
    }

    /// Reads a token of this scope. One whose key is not kept any more, or which a failover took back, is a 410; anything else
    /// is a 400.
    pub fn decode(&self, text: &str, scope: Scope<'_>) -> Result<ContinueToken, Error> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| refused(&base64_text(&error)))?;
        match bytes.first() {
            Some(&FORMAT) => {}
            Some(other) => {
                return Err(refused(&format!("server does not recognize this encoded version {other}")));
            }
            None => return Err(refused("unexpected end of token")),
        }
        let (signed, tag) =
            bytes.split_at_checked(bytes.len().saturating_sub(MAC_LENGTH)).unwrap_or_default();
        let mut reader = Reader(signed.get(1..).unwrap_or_default());
        let id = reader.u32().ok_or_else(|| refused("unexpected end of token"))?;
        let key = self.find(id).ok_or_else(|| Error::expired_page(None))?;
        key.mac(signed, scope)?.verify_slice(tag).map_err(|_| refused("signature mismatch"))?;
        reader.token().ok_or_else(|| refused("malformed token"))
    }

    fn find(&self, id: u32) -> Option<&TokenKey> {
        std::iter::once(&self.newest).chain(&self.older).find(|key| key.id == id)
    }
}

impl TokenKey {
    fn mac(&self, signed: &[u8], scope: Scope<'_>) -> Result<Hmac<Sha256>, Error> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret)
            .map_err(|_| Error::Internal("unusable continue token key".to_owned()))?;
        let resource = scope.resource;
        let namespace = scope.namespace.map(str::as_bytes);
        for part in
            [Some(signed), Some(resource.group.as_bytes()), Some(resource.plural.as_bytes()), namespace]
        {
            // Each part is preceded by its length, so that no two scopes sign the same bytes.
            mac.update(&part.map_or(NONE, |bytes| bytes.len() as u64).to_be_bytes());
            mac.update(part.unwrap_or_default());
        }
        // Tokens of the present are those of servers that know no doors.
        if let Some(door) = scope.door {
            mac.update(&door.0.to_be_bytes());
        }
        if !scope.order.is_empty() {
            // Longer than a door's revision, so that it cannot be taken for one.
            mac.update(b"rowplane.orderBy=");
            mac.update(scope.order.as_bytes());
        }
        Ok(mac)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self, length: usize) -> Option<String> {
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn token(mut self) -> Option<ContinueToken> {
        let at = match self.u64()? {
            NONE => PageAt::Latest,
            revision => PageAt::Revision(Revision(revision)),
        };
        let remaining = Some(self.u64()?).filter(|count| *count != NONE);
        let length = self.u16()?;
        let namespace = self.text(length.into())?;
        let name = self.text(self.0.len())?;
        Some(ContinueToken { at, after: LastKey { namespace, name }, remaining })
    }
}

fn base64_text(error: &base64::DecodeError) -> String {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            format!("illegal base64 data at input byte {at}")
        }
        base64::DecodeError::InvalidLength(length) => {
            format!("illegal base64 data at input byte {}", length.saturating_sub(1))
        }
        base64::DecodeError::InvalidPadding => "illegal base64 data".to_owned(),
    }
}

fn refused(why: &str) -> Error {
    Error::BadRequest(format!("invalid continue token: continue key is not valid: {why}"))
}
