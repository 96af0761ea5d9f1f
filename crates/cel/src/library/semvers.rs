//! `semver` (`apiserver/pkg/cel/library/semverlib.go` over `blang/semver/v4`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use rowplane_values::gotext::quote;

use super::opaque::Opaque;
use crate::value::{Error, Value};

#[derive(Clone, Debug)]
pub struct Semver {
    numbers: [u64; 3],
    pre: Vec<Part>,
    build: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Number(u64),
    Text(String),
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (at, part) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Part::Number(number) => write!(f, "{number}")?,
                Part::Text(text) => f.write_str(text)?,
            }
        }
        for (at, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if at == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Semver {
    /// Builds do not count.
    fn compare(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        if numbers != Ordering::Equal {
            return numbers;
        }
        match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let parts = self.pre.iter().zip(&other.pre).map(|(one, other)| one.compare(other));
                let first = parts.into_iter().find(|order| *order != Ordering::Equal);
                first.unwrap_or(self.pre.len().cmp(&other.pre.len()))
            }
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let patch = number(patch, "Patch")?;
        let pre = pre.map(|pre| pre.split('.').map(Part::parse).collect()).transpose()?.unwrap_or_default();
        let build = build.map(|build| build.split('.').map(build_part).collect()).transpose()?;
        Ok(Self { numbers: [major, minor, patch], pre, build: build.unwrap_or_default() })
    }

    /// Reads short versions, ones with a `v`, and ones with zeros before their numbers.
    fn normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts[parts.len() - 1].contains(['+', '-']) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {} number {}", what.to_lowercase(), quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{what} number must not contain leading zeroes {}", quote(text)));
    }
    let wrong = |why: &str| format!("strconv.ParseUint: parsing {}: {why}", quote(text));
    if text.is_empty() {
        return Err(wrong("invalid syntax"));
    }
    text.parse().map_err(|_| wrong("value out of range"))
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn build_part(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !is_name(text) {
        return Err(format!("Invalid character(s) found in build meta data {}", quote(text)));
    }
    Ok(text.to_owned())
}

impl Part {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if is_number(text) {
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    quote(text)
                ));
            }
            let wrong = || format!("strconv.ParseUint: parsing {}: value out of range", quote(text));
            return text.parse().map(Self::Number).map_err(|_| wrong());
        }
        if !is_name(text) {
            return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
        }
        Ok(Self::Text(text.to_owned()))
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.cmp(other),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
        }
    }
}

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    if let ("semver" | "isSemver", Some(Value::String(text))) = (function, arguments.first()) {
        let read = match arguments.get(1) {
            None | Some(Value::Bool(false)) => Semver::parse(text),
            Some(Value::Bool(true)) => Semver::normalized(text),
            Some(_) => return None,
        };
        return Some(match (function, read) {
            ("isSemver", read) => Ok(Value::Bool(read.is_ok())),
            (_, Ok(version)) => Ok(Value::Opaque(Arc::new(Opaque::Semver(version)))),
            (_, Err(why)) => Err(Error::new(why)),
        });
    }
    let of = |at: usize| match arguments.get(at)? {
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Semver(version) => Some(version),
            _ => None,
        },
        _ => None,
    };
    let version = of(0)?;
    let part = |at: usize| Value::Int(version.numbers[at] as i64);
    Some(Ok(match function {
        "major" => part(0),
        "minor" => part(1),
        "patch" => part(2),
        "isLessThan" => Value::Bool(version.compare(of(1)?) == Ordering::Less),
        "isGreaterThan" => Value::Bool(version.compare(of(1)?) == Ordering::Greater),
        "compareTo" => Value::Int(version.compare(of(1)?) as i64),
        _ => return None,
    }))
}
