//! The flags of a server and their values, as `/flagz` shows them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Arg, ArgMatches, CommandFactory};

use super::args::Cli;

/// The text in place of a value that nobody is to see.
const CLASSIFIED: &str = "CLASSIFIED";
/// Flags whose values may hold passwords.
const SECRET: [&str; 1] = ["datastore"];

/// The flags of a command line that serves; those that are not given, with their defaults.
pub fn shown(arguments: &[impl Into<OsString> + Clone]) -> BTreeMap<String, String> {
    let command = <Cli as CommandFactory>::command();
    let Ok(matches) = command.clone().try_get_matches_from(arguments.iter().cloned()) else {
        return BTreeMap::new();
    };
    let (command, matches) = match matches.subcommand() {
        Some((name, of_subcommand)) => match command.find_subcommand(name) {
            Some(subcommand) => (subcommand.clone(), of_subcommand.clone()),
            None => return BTreeMap::new(),
        },
        None => (command, matches),
    };
    command.get_arguments().filter_map(|flag| shown_flag(flag, &matches)).collect()
}

fn shown_flag(flag: &Arg, matches: &ArgMatches) -> Option<(String, String)> {
    let name = flag.get_long()?;
    // `--help` and `--version` have no values.
    let values = matches.try_get_raw(flag.get_id().as_str()).ok()?;
    let texts: Vec<_> = values.into_iter().flatten().map(|value| value.to_string_lossy()).collect();
    let value = match texts.join(",") {
        value if SECRET.contains(&name) && !value.is_empty() => CLASSIFIED.to_owned(),
        value => value,
    };
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_shown_with_their_defaults_and_without_secrets() {
        for serve in [&["rowplane"][..], &["rowplane", "serve"]] {
            let more =
                ["--secure-port=7", "--datastore=postgres://me:hunter2@db/x", "--authorization-mode=RBAC"];
            let flags = shown(&[serve, &more].concat());
            let value = |name: &str| flags.get(name).map(String::as_str);
            assert_eq!(value("secure-port"), Some("7"));
            assert_eq!(value("datastore"), Some("CLASSIFIED"));
            assert_eq!(value("authorization-mode"), Some("RBAC"));
            assert_eq!(value("audit-log-maxsize"), Some("100"));
            assert_eq!(value("audit-policy-file"), Some(""));
            assert!(value("help").is_none() && value("version").is_none());
            assert!(flags.values().all(|value| !value.contains("hunter2")));
        }
    }
}
