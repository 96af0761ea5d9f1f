//! Parses a command line like Go's pflag.

use std::collections::BTreeMap;

use super::flags::Form;

/// The values of each flag that was set, in order.
pub type Values = BTreeMap<String, Vec<String>>;

/// The action that a command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Run(Values),
    Help,
    /// Contains the value of `--version`.
    Version(String),
}

/// Parses `--name value`, `--name=value`, `--bool` and `-v 2`, given the forms of the flags. `_` and `-` in a name are
/// equal.
pub fn read(
    arguments: impl IntoIterator<Item = String>,
    form: impl Fn(&str) -> Option<Form>,
) -> Result<Asked, String> {
    let mut arguments = arguments.into_iter();
    let (mut values, mut positional) = (Values::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        let Some((name, inline)) = split(&argument)? else {
            if argument == "--" {
                positional.extend(arguments.by_ref());
            } else {
                positional.push(argument);
            }
            continue;
        };
        match name.as_str() {
            "help" | "h" => return Ok(Asked::Help),
            "version" => return Ok(Asked::Version(inline.unwrap_or_else(|| "true".to_owned()))),
            _ => {}
        }
        let value = match (form(&name), inline) {
            (None, _) => return Err(format!("unknown flag: --{name}")),
            (Some(_), Some(inline)) => inline,
            (Some(Form::Bool), None) => "true".to_owned(),
            (Some(_), None) => arguments.next().ok_or_else(|| format!("flag needs an argument: --{name}"))?,
        };
        values.entry(name).or_default().push(value);
    }
    // Upstream refuses only arguments that are not empty.
    if positional.iter().all(String::is_empty) {
        return Ok(Asked::Run(values));
    }
    Err(format!("\"kube-apiserver\" does not take any arguments, got {positional:?}"))
}

/// Splits an argument into the name of a flag and the value after `=`; `None` if it is not a flag.
fn split(argument: &str) -> Result<Option<(String, Option<String>)>, String> {
    let text = match (argument.strip_prefix("--"), argument.strip_prefix('-')) {
        (Some(""), _) | (_, None) | (None, Some("")) => return Ok(None),
        (Some(long), _) => long,
        // The forms `-v2` and `-v=2`.
        (None, Some(short)) if short.starts_with('v') => {
            let value = short[1..].trim_start_matches('=');
            return Ok(Some(("v".to_owned(), (!value.is_empty()).then(|| value.to_owned()))));
        }
        (None, Some("h")) => "h",
        (None, Some(short)) => return Err(format!("unknown shorthand flag in -{short}")),
    };
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if name.is_empty() {
        return Err(format!("bad flag syntax: {argument}"));
    }
    Ok(Some((name.replace('_', "-"), value.map(str::to_owned))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(arguments: &[&str]) -> Result<Asked, String> {
        read(arguments.iter().map(|argument| (*argument).to_owned()), |name| match name {
            "allow-privileged" => Some(Form::Bool),
            "v" | "secure-port" => Some(Form::Scalar),
            "etcd-servers" => Some(Form::List),
            _ => None,
        })
    }

    /// 60 of `docs/spec/cluster.md`.
    #[test]
    fn cluster_60_forms() {
        let arguments = [
            "--secure-port=1",
            "--secure_port",
            "2",
            "--allow-privileged",
            "-v",
            "3",
            "--etcd-servers=a,b",
            "-v=4",
        ];
        let Ok(Asked::Run(values)) = read_all(&arguments) else { panic!("they are fine") };
        let values: Vec<_> = values.iter().map(|(name, values)| (name.as_str(), values.join(" "))).collect();
        let expected =
            [("allow-privileged", "true"), ("etcd-servers", "a,b"), ("secure-port", "1 2"), ("v", "3 4")];
        assert_eq!(values, expected.map(|(name, values)| (name, values.to_owned())));
        assert_eq!(read_all(&["--allow-privileged", "-h"]), Ok(Asked::Help));
        assert_eq!(read_all(&["--version=raw"]), Ok(Asked::Version("raw".to_owned())));
    }

    #[test]
    fn cluster_60_refusals() {
        let cases: [(&[&str], &str); 5] = [
            (&["--insecure-port=0"], "unknown flag: --insecure-port"),
            (&["--secure-port"], "flag needs an argument: --secure-port"),
            (
                &["--allow-privileged", "true"],
                "\"kube-apiserver\" does not take any arguments, got [\"true\"]",
            ),
            (&["--", "-v"], "\"kube-apiserver\" does not take any arguments, got [\"-v\"]"),
            (&["-x"], "unknown shorthand flag in -x"),
        ];
        for (arguments, text) in cases {
            assert_eq!(read_all(arguments), Err(text.to_owned()));
        }
    }
}
