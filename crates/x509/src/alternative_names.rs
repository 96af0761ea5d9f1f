//! Alternative names of a subject: hosts, addresses, mailboxes and URIs.

use std::net::IpAddr;

use crate::der::{Der, SEQUENCE, context};
use crate::domain::{domain_is_valid, uri_host};
use crate::error::Error;

/// The names of a subject beside the distinguished one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlternativeNames {
    pub dns: Vec<String>,
    pub emails: Vec<String>,
    pub addresses: Vec<IpAddr>,
    /// URIs, each with its host.
    pub uris: Vec<(String, String)>,
}

impl AlternativeNames {
    /// Reads the value of the extension. Names of other sorts are passed over.
    pub(crate) fn read(mut value: Der<'_>) -> Result<Self, Error> {
        let invalid = || Error::malformed("invalid subject alternative names");
        let mut list = value.read(SEQUENCE).ok_or_else(invalid)?;
        let mut names = Self::default();
        let text = |bytes: &[u8], kind: &str| match bytes.is_ascii() {
            true => Ok(bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
            false => Err(Error::malformed(format!("SAN {kind} is malformed"))),
        };
        while !list.is_empty() {
            let name = list.any().ok_or_else(|| Error::malformed("invalid subject alternative name"))?;
            let content = name.content;
            if name.tag == context(1) {
                names.emails.push(text(content, "rfc822Name")?);
            } else if name.tag == context(2) {
                names.dns.push(text(content, "dNSName")?);
            } else if name.tag == context(6) {
                let uri = text(content, "uniformResourceIdentifier")?;
                let bad = |why| Error::malformed(format!("cannot parse URI {uri:?}: {why}"));
                let host = uri_host(&uri).map_err(bad)?;
                if !domain_is_valid(&host, false) {
                    return Err(bad("invalid domain"));
                }
                names.uris.push((uri, host));
            } else if name.tag == context(7) {
                let v4 = <[u8; 4]>::try_from(content).map(IpAddr::from);
                let address = v4.or_else(|_| <[u8; 16]>::try_from(content).map(IpAddr::from));
                names.addresses.push(address.map_err(|_| {
                    Error::malformed(format!("cannot parse IP address of length {}", content.len()))
                })?);
            }
        }
        Ok(names)
    }

    pub fn is_empty(&self) -> bool {
        self.dns.is_empty() && self.emails.is_empty() && self.addresses.is_empty() && self.uris.is_empty()
    }

    /// The value of an extension with these names and no others, in Go's order.
    pub fn to_der(&self) -> Vec<u8> {
        use crate::name::tagged;
        let dns = self.dns.iter().map(|name| tagged(context(2), name.as_bytes()));
        let emails = self.emails.iter().map(|name| tagged(context(1), name.as_bytes()));
        let addresses = self.addresses.iter().map(|address| match address.to_canonical() {
            IpAddr::V4(address) => tagged(context(7), &address.octets()),
            IpAddr::V6(address) => tagged(context(7), &address.octets()),
        });
        let uris = self.uris.iter().map(|(uri, _)| tagged(context(6), uri.as_bytes()));
        let all: Vec<Vec<u8>> = dns.chain(emails).chain(addresses).chain(uris).collect();
        tagged(SEQUENCE, &all.concat())
    }
}
