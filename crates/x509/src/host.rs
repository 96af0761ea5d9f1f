//! Names of hosts, and whether a certificate is for one of them.

use std::net::IpAddr;

use crate::certificate::Certificate;
use crate::error::Error;

/// Lists of more names than these are counted instead of shown.
const SHOWN: usize = 100;

impl Certificate {
    /// Checks that the certificate is for a host: an address, which may stand in brackets, or a name. Common names do not
    /// count.
    pub fn check_host(&self, host: &str) -> Result<(), Error> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let names = self.extensions.names.clone().unwrap_or_default();
        if let Ok(address) = bare.parse::<IpAddr>() {
            let is_same = |other: &IpAddr| other.to_canonical() == address.to_canonical();
            if names.addresses.iter().any(is_same) {
                return Ok(());
            }
            return Err(Error::Hostname(no_address(&names.addresses, bare)));
        }
        let wanted = host.to_ascii_lowercase();
        let is_host = is_host(&wanted, Form::Name);
        let matches = |name: &String| match is_host && self::is_host(name, Form::Pattern) {
            true => matches(name, &wanted),
            false => {
                let is_empty = |text: &str| text.is_empty() || text == ".";
                !is_empty(name) && !is_empty(&wanted) && name.eq_ignore_ascii_case(&wanted)
            }
        };
        if names.dns.iter().any(matches) {
            return Ok(());
        }
        Err(Error::Hostname(self.no_name(&names.dns, host)))
    }

    fn no_name(&self, names: &[String], host: &str) -> String {
        if self.extensions.names.is_none()
            && matches(self.subject_name.common_name(), &host.to_ascii_lowercase())
        {
            return "certificate relies on legacy Common Name field, use SANs instead".to_owned();
        }
        match names.len() {
            0 => format!("certificate is not valid for any names, but wanted to match {host}"),
            SHOWN.. => format!("certificate is valid for {} names, but none matched {host}", names.len()),
            _ => format!("certificate is valid for {}, not {host}", names.join(", ")),
        }
    }
}

fn no_address(addresses: &[IpAddr], host: &str) -> String {
    match addresses.len() {
        0 => format!("cannot validate certificate for {host} because it doesn't contain any IP SANs"),
        SHOWN.. => format!("certificate is valid for {} IP SANs, but none matched {host}", addresses.len()),
        _ => {
            let shown: Vec<String> = addresses.iter().map(|one| one.to_canonical().to_string()).collect();
            format!("certificate is valid for {}, not {host}", shown.join(", "))
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Name,
    /// May begin with `*.`.
    Pattern,
}

fn is_host(text: &str, form: Form) -> bool {
    let text = match form {
        Form::Name => text.strip_suffix('.').unwrap_or(text),
        Form::Pattern => text,
    };
    let is_label = |(at, label): (usize, &str)| {
        let is_star = form == Form::Pattern && at == 0 && label == "*";
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        is_star || (!label.is_empty() && !label.starts_with('-') && label.chars().all(is_plain))
    };
    text != "*" && text.split('.').enumerate().all(is_label)
}

/// Whether a pattern covers a name in lower case.
fn matches(pattern: &str, name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    if pattern.is_empty() {
        return false;
    }
    let pattern = pattern.to_ascii_lowercase();
    let (wanted, found): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), name.split('.').collect());
    let fits =
        |(at, (wanted, found)): (usize, (&&str, &&str))| (at == 0 && *wanted == "*") || wanted == found;
    wanted.len() == found.len() && wanted.iter().zip(&found).enumerate().all(fits)
}
