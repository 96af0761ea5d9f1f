//! kube-apiserver's command line, with which rowplane takes its place, mainly in tests (`docs/spec/cluster.md`, 3.3 and
//! 4.2).
//!
//! The flags are translated into those of `rowplane serve`, which are accepted, too, and have the same names mostly. A flag without an effect is
//! accepted and named in the log; a flag is refused if it asks for something that rowplane would not do and that its
//! user relies on.

mod command_line;
mod datastore;
pub mod etcd_servers;
mod flags;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, CommandFactory, Parser as _};

use self::command_line::{Asked, Values};
use self::etcd_servers::EtcdServers;
use self::flags::{Effect, FLAGS, Form};
use super::args::{Cli, Command, Defaults};
use super::config::ServeConfig;
use super::error::Error;
use super::etcd::datastore::Place;
use super::feature_gates::FeatureGates;
use super::flagz;
use crate::api::admission::plugins;
use crate::gotext;
use crate::http::documents::discovery::version;
use crate::metrics::features;
use crate::server::data_dir::Temporary;

/// The component that `--emulated-version` is about if it names none.
const COMPONENT: &str = "kube";
const CERT_DIR: &str = "/var/run/kubernetes";
const BIND_ADDRESS: &str = "0.0.0.0";

/// The result of parsing a command line.
pub enum ParsedCommand {
    Run(Box<Run>),
    Print(String),
}

/// A server to run.
pub struct Run {
    pub config: ServeConfig,
    /// Notes about flags, for the log.
    pub notes: Vec<String>,
    /// Why the state is in memory, if nobody asked for that.
    pub in_memory: Option<String>,
    /// The data directory, if it goes with the server.
    pub temporary: Option<Temporary>,
}

/// Parses a command line without the program's name. `ask` asks the servers of etcd that it names.
pub fn parse(
    arguments: impl IntoIterator<Item = String>,
    ask: impl FnOnce(&EtcdServers) -> Result<Place, Error>,
) -> Result<ParsedCommand, Error> {
    let flags = Flags::all();
    match command_line::read(arguments, |name| flags.form(name)).map_err(Error::Refused)? {
        Asked::Help => Ok(ParsedCommand::Print(flags.help())),
        Asked::Version(kind) => Ok(ParsedCommand::Print(version_text(&kind))),
        Asked::Run(values) => Translation::new(&flags, &values).into_config(ask),
    }
}

/// All accepted flags by heading: those of the table, then those of `rowplane serve`.
struct Flags(Vec<(String, String, Form)>);

impl Flags {
    fn all() -> Self {
        let of_table = FLAGS.iter().flat_map(|(heading, flags)| {
            flags.iter().map(|flag| ((*heading).to_owned(), flag.name.to_owned(), flag.form))
        });
        let cli = <Cli as CommandFactory>::command();
        let serve = cli.get_subcommands().find(|command| command.get_name() == "serve");
        let of_serve = serve.into_iter().flat_map(clap::Command::get_arguments).flat_map(|flag| {
            let heading = flag.get_help_heading().unwrap_or("Global flags").to_owned();
            let names = flag.get_long_and_visible_aliases().into_iter().flatten();
            names.map(move |name| (heading.clone(), name.to_owned(), form(flag))).collect::<Vec<_>>()
        });
        Self(of_table.chain(of_serve).collect())
    }

    fn form(&self, name: &str) -> Option<Form> {
        self.0.iter().find(|(_, known, _)| known == name).map(|(_, _, form)| *form)
    }

    /// The flags under their headings, each at the start of a line: test environments look for them there.
    fn help(&self) -> String {
        let mut groups = BTreeMap::<&str, BTreeMap<&str, Form>>::new();
        for (heading, name, form) in &self.0 {
            groups.entry(heading).or_default().entry(name).or_insert(*form);
        }
        groups.entry("Global flags").or_default().extend([("help", Form::Bool), ("version", Form::Scalar)]);
        let mut text = "rowplane in kube-apiserver's place.\n\nUsage:\n  kube-apiserver [flags]\n".to_owned();
        for (heading, flags) in groups {
            text.push_str(&format!("\n{heading}:\n\n"));
            for (name, form) in flags {
                let value = match form {
                    Form::Bool => "",
                    Form::Scalar | Form::Number | Form::Each => " string",
                    Form::List => " strings",
                };
                text.push_str(&format!("      --{name}{value}\n"));
            }
        }
        text
    }
}

/// The form of a flag of `rowplane serve`, which follows from its type.
fn form(flag: &Arg) -> Form {
    let is_one_of = |types: &[TypeId]| types.iter().any(|of| flag.get_value_parser().type_id() == *of);
    let may_stand_alone = flag.get_num_args().is_some_and(|values| values.min_values() == 0);
    let placeholder = flag.get_value_names().and_then(|names| names.last());
    if may_stand_alone || !flag.get_action().takes_values() {
        Form::Bool
    } else if flag.get_value_delimiter().is_some() || placeholder.is_some_and(|name| name.ends_with(",…")) {
        Form::List
    } else if matches!(flag.get_action(), ArgAction::Append) {
        Form::Each
    } else if is_one_of(&numbers()) {
        Form::Number
    } else {
        Form::Scalar
    }
}

/// Types of numbers, durations and ranges, none of which can be empty.
fn numbers() -> [TypeId; 10] {
    [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
        TypeId::of::<f32>(),
        TypeId::of::<f64>(),
        TypeId::of::<Duration>(),
        TypeId::of::<RangeInclusive<u16>>(),
    ]
}

/// The effect of a flag that is not passed on to `rowplane serve` as it is.
fn effect(name: &str) -> Option<Effect> {
    FLAGS.iter().flat_map(|(_, flags)| *flags).find(|flag| flag.name == name).map(|flag| flag.effect)
}

/// A translation of flags into those of `rowplane serve`.
struct Translation<'a> {
    flags: &'a Flags,
    values: &'a Values,
    serve: Vec<String>,
    notes: Vec<String>,
    problems: Vec<String>,
}

impl<'a> Translation<'a> {
    fn new(flags: &'a Flags, values: &'a Values) -> Self {
        let serve = vec!["rowplane".to_owned(), "serve".to_owned()];
        let mut this = Self { flags, values, serve, notes: Vec::new(), problems: Vec::new() };
        for (name, given) in values {
            this.take(name, given);
        }
        this
    }

    fn take(&mut self, name: &str, given: &[String]) {
        let last = given.last().map(String::as_str).unwrap_or_default();
        match (effect(name), self.flags.form(name)) {
            // Without a mode upstream takes its default.
            (None, Some(Form::List)) if name == "authorization-mode" && self.list(name).is_empty() => {}
            (None, Some(Form::List)) => self.serve.push(format!("--{name}={}", given.join(","))),
            (None, Some(Form::Each)) => {
                self.serve.extend(given.iter().map(|value| format!("--{name}={value}")));
            }
            (None | Some(Effect::Own), Some(Form::Scalar)) if last.is_empty() => {}
            (None, _) => self.serve.push(format!("--{name}={last}")),
            (Some(Effect::Ignored(reason)), _) => self.notes.push(format!("--{name} ({reason})")),
            // An empty value requests nothing.
            (Some(Effect::Own), form) => self.look_at(name, form, last),
        }
    }

    /// Handles flags of which only some values are supported.
    fn look_at(&mut self, name: &str, form: Option<Form>, last: &str) {
        let list = if form == Some(Form::List) { self.list(name) } else { Vec::new() };
        match (name, last) {
            ("secure-port", "0") => self.problems.push(
                "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0".to_owned(),
            ),
            ("secure-port", port) => self.serve.push(format!("--secure-port={port}")),
            ("storage-backend", "etcd3") => self.notes.push(format!("--{name} (there is no etcd here)")),
            ("storage-backend", _) => self.problems.push(
                "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'"
                    .to_owned(),
            ),
            ("cert-dir" | "etcd-servers" | "etcd-cafile" | "etcd-certfile" | "etcd-keyfile", _) => {}
            ("emulated-version" | "min-compatibility-version", _) => self.check_versions(name, &list),
            ("feature-gates", _) => self.switch_features(&list),
            ("admission-control", _) => self.only_plugins(&list),
            _ => self.problems.push(format!("--{name}={last} is not supported yet")),
        }
    }

    /// Switches rowplane's own features. Features of upstream's that cannot be switched here are ignored and noted.
    fn switch_features(&mut self, pairs: &[&str]) {
        let is_upstreams = |name: &str| features().any(|known| known.name == name);
        let (mut own, mut ignored) = (Vec::new(), Vec::new());
        for &pair in pairs {
            match pair.split_once('=').map(|(name, value)| (name.trim(), gotext::parse_bool(value.trim()))) {
                Some((name, Some(_))) if !FeatureGates::has(name) && is_upstreams(name) => ignored.push(name),
                _ => own.push(pair),
            }
        }
        self.serve.push(format!("--feature-gates={}", own.join(",")));
        if !ignored.is_empty() {
            self.notes.push(format!("--feature-gates ({} cannot be switched here)", ignored.join(", ")));
        }
    }

    /// Takes the minor version that is served, as `1.37` or `kube=1.37`; of the versions to be compatible with also the one
    /// before.
    fn check_versions(&mut self, name: &str, versions: &[&str]) {
        let served = version::emulated();
        let oldest = format!("{}.{}", version::MAJOR, version::MIN_COMPATIBILITY_MINOR);
        let minors = if name == "emulated-version" { vec![&*served] } else { vec![&*served, &*oldest] };
        for given in versions {
            let (component, version) = given.split_once('=').unwrap_or((COMPONENT, given));
            if component != COMPONENT {
                self.problems.push(format!("component not registered: {component}"));
            } else if !minors.contains(&version.trim_start_matches('v')) {
                self.problems.push(format!(
                    "--{name}={given} is not available: this rowplane serves Kubernetes {served} alone; for another minor version \
                     run its kube-apiserver"
                ));
            }
        }
    }

    /// The old flag, which switches off all plugins that it does not name.
    fn only_plugins(&mut self, names: &[&str]) {
        if ["enable-admission-plugins", "disable-admission-plugins"]
            .iter()
            .any(|flag| self.values.contains_key(*flag))
        {
            let why = "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive";
            self.problems.push(why.to_owned());
            return;
        }
        let all = plugins::all();
        for name in names.iter().filter(|name| !all.contains(name)) {
            self.problems.push(format!("admission-control plugin {name:?} is unknown"));
        }
        let (on, off): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| names.contains(name));
        self.serve.push(format!("--enable-admission-plugins={}", on.join(",")));
        self.serve.push(format!("--disable-admission-plugins={}", off.join(",")));
    }

    fn list(&self, name: &str) -> Vec<&'a str> {
        let given = self.values.get(name).into_iter().flatten();
        given.flat_map(|value| value.split(',')).map(str::trim).filter(|value| !value.is_empty()).collect()
    }

    fn last(&self, name: &str) -> Option<&'a str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// Whether the flag or its environment variable is set.
    fn is_set(&self, name: &str) -> bool {
        let variable = format!("ROWPLANE_{}", name.replace('-', "_").to_uppercase());
        let is_given = match (self.last(name), self.flags.form(name)) {
            (None, _) => false,
            (Some(_), Some(Form::List)) => !self.list(name).is_empty(),
            (Some(value), Some(Form::Scalar)) => !value.is_empty(),
            (Some(_), _) => true,
        };
        is_given || std::env::var_os(variable).is_some()
    }

    /// Sets kube-apiserver's default, unless the flag or its environment variable is set.
    fn set_default(&mut self, name: &str, value: &str) {
        if !self.is_set(name) {
            self.serve.push(format!("--{name}={value}"));
        }
    }

    /// A wrong path gets upstream's error.
    fn check_files(&mut self) {
        for flag in ["service-account-key-file", "service-account-signing-key-file"] {
            for path in self.values.get(flag).into_iter().flatten() {
                if let Err(error) = std::fs::metadata(path) {
                    self.problems.push(format!("--{flag}: {path}: {error}"));
                }
            }
        }
    }

    fn into_config(
        mut self,
        ask: impl FnOnce(&EtcdServers) -> Result<Place, Error>,
    ) -> Result<ParsedCommand, Error> {
        self.check_files();
        let in_memory = if self.problems.is_empty() { self.choose_datastore(ask)? } else { None };
        // Upstream lets everybody do everything unless it is told otherwise.
        if self.last("authorization-config").is_none_or(str::is_empty) {
            self.set_default("authorization-mode", "AlwaysAllow");
        }
        let published = Some(PathBuf::from(self.last("cert-dir").unwrap_or(CERT_DIR)));
        let published = published.filter(|directory| !directory.as_os_str().is_empty());
        // The keys of a server that publishes no certificate, which kube-apiserver has in memory alone.
        let unnamed =
            if published.is_none() { Some(Temporary::create().map_err(Error::Server)?) } else { None };
        let cert_dir =
            published.as_deref().or(unnamed.as_ref().map(Temporary::path)).unwrap_or(Path::new(""));
        self.set_default("bind-address", BIND_ADDRESS);
        self.set_default("cluster-controllers", "false");
        self.set_default("audit-database-retention", "0");
        self.set_default("data-dir", &cert_dir.to_string_lossy());
        let serving_pair = serving_pair(cert_dir);
        let Self { serve, notes, problems, .. } = self;
        let flags = flagz::shown(&serve);
        let mut config = match Cli::try_parse_from(serve).map_err(|error| Error::usage(&error))?.command() {
            Command::Serve(arguments) => arguments.into_config(Defaults::Upstreams)?,
            _ => return Err(Error::Refused("the flags are no server's".to_owned())),
        };
        match problems.as_slice() {
            [] => {}
            [problem] => return Err(Error::Refused(problem.clone())),
            _ => return Err(Error::Refused(format!("[{}]", problems.join(", ")))),
        }
        config.server.flags = flags;
        if let Some(https) = &mut config.server.https {
            https.kubeconfig = None;
            let serving = &mut https.certificates.serving;
            *serving = serving.take().or(serving_pair);
            https.certificates.published = published;
        }
        Ok(ParsedCommand::Run(Box::new(Run { config, notes, in_memory, temporary: unnamed })))
    }
}

/// The serving certificate in `--cert-dir`, if there is one that is not the server's own, which is renewed.
fn serving_pair(cert_dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let pair = (cert_dir.join("apiserver.crt"), cert_dir.join("apiserver.key"));
    let own = std::fs::read(cert_dir.join("pki/apiserver.key")).ok();
    let is_own = own.is_some() && std::fs::read(&pair.1).ok() == own;
    (pair.0.exists() && pair.1.exists() && !is_own).then_some(pair)
}

fn version_text(kind: &str) -> String {
    match kind {
        "raw" => format!(
            "version.Info{{Major:\"{}\", Minor:\"{}\", GitVersion:\"{}\"}}\n",
            version::MAJOR,
            version::MINOR,
            version::git_version()
        ),
        _ => format!("Kubernetes {}\n", version::release()),
    }
}

#[cfg(test)]
mod tests;
