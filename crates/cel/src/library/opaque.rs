//! Values with functions of their own and without fields.

use std::net::IpAddr;

use super::addresses::Cidr;
use super::authorization::Authorization;
use super::formats::Format;
use super::quantities::Quantity;
use super::semvers::Semver;
use super::urls::Url;

#[derive(Clone, Debug)]
pub enum Opaque {
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Url),
    Semver(Semver),
    Format(Format),
    Authorization(Authorization),
}

impl Opaque {
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authorization(authorization) => authorization.type_name(),
        }
    }

    pub fn go_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "cel.Quantity",
            Self::Ip(_) => "cel.IP",
            Self::Cidr(_) => "cel.CIDR",
            Self::Url(_) => "cel.URL",
            Self::Semver(_) => "cel.Semver",
            Self::Format(_) => "cel.Format",
            Self::Authorization(_) => "library.authorizerVal",
        }
    }

    /// Addresses count their bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => u64::from(cidr.bits.div_ceil(8)),
            _ => 1,
        }
    }

    /// `None` for values of two types.
    pub fn equals(&self, other: &Self) -> Option<bool> {
        Some(match (self, other) {
            (Self::Quantity(_), Self::Quantity(other)) if other.computed => return None,
            (Self::Quantity(one), Self::Quantity(other)) => one == other,
            (Self::Ip(one), Self::Ip(other)) => one == other,
            (Self::Cidr(one), Self::Cidr(other)) => one == other,
            (Self::Url(one), Self::Url(other)) => one == other,
            (Self::Semver(one), Self::Semver(other)) => one == other,
            (Self::Format(one), Self::Format(other)) => one.name() == other.name(),
            _ => return None,
        })
    }

    pub fn canonical(&self) -> String {
        match self {
            Self::Quantity(quantity) => format!("quantity({})", quantity.canonical()),
            Self::Ip(ip) => format!("ip({ip})"),
            Self::Cidr(cidr) => format!("cidr({cidr})"),
            Self::Url(url) => format!("url({})", url.text()),
            Self::Semver(version) => format!("semver({version})"),
            Self::Format(format) => format!("format({})", format.name()),
            Self::Authorization(authorization) => authorization.type_name().to_owned(),
        }
    }
}
