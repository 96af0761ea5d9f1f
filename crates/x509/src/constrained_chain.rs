//! The names in a chain of certificates, held to the constraints of the authorities above them.

use std::net::IpAddr;

use crate::certificate::Certificate;
use crate::constraints::{Mailbox, NameConstraints};

/// Checks the names of each certificate of a chain, the leaf first, by the constraints of those above it.
pub(crate) fn check_chain(chain: &[&Certificate]) -> Result<(), String> {
    for (at, certificate) in chain.iter().enumerate() {
        let above = chain[at + 1..].iter().filter_map(|issuer| issuer.extensions.constraints.as_ref());
        let above: Vec<&NameConstraints> = above.collect();
        let Some(names) = certificate.extensions.names.as_ref().filter(|_| !above.is_empty()) else {
            continue;
        };
        let uris = names.uris.iter().map(comparable).collect::<Result<Vec<_>, _>>()?;
        let mailbox = |text: &String| match Mailbox::parse(text) {
            Some(mailbox) => Ok((text.clone(), mailbox)),
            None => Err(format!("cannot parse rfc822Name {text:?}")),
        };
        let emails = names.emails.iter().map(mailbox).collect::<Result<Vec<_>, _>>()?;
        above.iter().try_for_each(|constraints| constraints.check(names, &emails, &uris))?;
    }
    Ok(())
}

/// A URI with its host as a domain, without its port.
fn comparable((uri, authority): &(String, String)) -> Result<(String, String), String> {
    let host = authority.to_ascii_lowercase();
    if host.is_empty() {
        return Err(format!("URI with empty host ({uri:?}) cannot be matched against constraints"));
    }
    let host = match host.ends_with(']') {
        true => host,
        false => host.rsplit_once(':').map_or(host.clone(), |(host, _)| host.to_owned()),
    };
    if host.starts_with('[') || host.parse::<IpAddr>().is_ok() {
        return Err(format!("URI with IP ({uri:?}) cannot be matched against constraints"));
    }
    Ok((uri.clone(), host))
}
