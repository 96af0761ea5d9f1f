//! `rowplane auth`: who may do what, and why, by the roles and bindings in a store.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::args::StoreArgs;
use super::error::Error;
use super::keys::KeyArgs;
use super::output::OutputArgs;
use super::table::aligned;
use crate::auth::authorizer::Attributes;
use crate::auth::pki::{Retired, TokenKeys, token_key_file};
use crate::auth::rbac::account::Account;
use crate::codec::object::Draft;
use crate::kinds::built_in;
use crate::server::datastore::Datastore;
use crate::storage::postgres::Postgres;
use crate::storage::sqlite::Sqlite;
use crate::tree::{Value, json};
use crate::user::{AUTHENTICATED, MASTERS, User};

#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Check whether a user may perform an action, and list the role bindings that allow it
    Why(WhyArgs),
    /// List the users, groups and service accounts that may perform an action, and the role bindings that allow it
    WhoCan(WhoCanArgs),
    /// Generate a new key for signing service account tokens. Servers on the data directory sign with it within a second;
    /// tokens signed by earlier keys stay valid
    RotateKeys(RotateKeysArgs),
}

#[derive(Clone, Debug, Args)]
pub struct RotateKeysArgs {
    /// The data directory of the servers, in which the keys are stored
    #[arg(long, env = "ROWPLANE_DATA_DIR", value_name = "DIR", default_value = "./rowplane-data")]
    data_dir: PathBuf,
    /// Discards earlier keys, so that the tokens they signed are no longer accepted
    #[arg(long)]
    discard_old: bool,
}

/// The deed that somebody wants to do: a verb, and the resource or path that it is about.
#[derive(Clone, Debug, Args)]
pub struct DeedArgs {
    /// The verb of the action, such as get, list, create or impersonate
    #[arg(value_name = "VERB")]
    verb: String,
    /// The resource as TYPE, TYPE.GROUP or TYPE/NAME (`pods/web`), or a non-resource URL path such as /metrics
    #[arg(value_name = "RESOURCE")]
    resource: String,
    /// The subresource of the action, such as log, exec or status
    #[arg(long, value_name = "NAME", default_value = "")]
    subresource: String,
    /// The namespace of the action [default: all namespaces]
    #[arg(long, short, value_name = "NAME", default_value = "")]
    namespace: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

#[derive(Clone, Debug, Args)]
pub struct WhyArgs {
    /// The username to check
    #[arg(long = "as", value_name = "USER")]
    user: String,
    /// A group to check the user as a member of; may be given more than once. The groups of service accounts, nodes and
    /// authenticated users are added by the name
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,
    #[command(flatten)]
    deed: DeedArgs,
}

#[derive(Clone, Debug, Args)]
pub struct WhoCanArgs {
    #[command(flatten)]
    deed: DeedArgs,
}

/// Answers on standard output.
pub async fn run(command: AuthCommand) -> Result<(), Error> {
    let text = answer(command).await?;
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
}

/// The text to be printed.
pub async fn answer(command: AuthCommand) -> Result<String, Error> {
    Ok(match command {
        AuthCommand::Why(WhyArgs { user, groups, deed }) => {
            why(&account(&deed).await?, &user_of(user, groups), &deed)
        }
        AuthCommand::RotateKeys(arguments) => rotate_keys(&arguments)?,
        AuthCommand::WhoCan(WhoCanArgs { deed }) => who_can(&account(&deed).await?, &deed),
    })
}

fn rotate_keys(arguments: &RotateKeysArgs) -> Result<String, Error> {
    let of_before = if arguments.discard_old { Retired::Discard } else { Retired::Keep };
    let dir = arguments.data_dir.join("pki");
    if !token_key_file(&dir).exists() {
        let why = format!("{} holds no key of tokens: no server has been started on it", dir.display());
        return Err(Error::Usage(why));
    }
    let keys = TokenKeys::rotate(&dir, of_before).map_err(|error| Error::Usage(error.to_string()))?;
    let TokenKeys { signing, retired, discarded } = keys;
    let (id, retired, discarded) = (&signing.public.id, retired.len(), discarded.len());
    Ok(format!(
        "new key {id}; {retired} retired keys still verify tokens, {discarded} discarded ones do not\n"
    ))
}

/// Reads the policy of a store, on which servers may be running.
async fn account(deed: &DeedArgs) -> Result<Account, Error> {
    let (datastore, keys) = (deed.store.datastore()?, deed.keys.load().await?);
    let mut account = Account::default();
    for resource in Account::RESOURCES {
        let group_resource = resource.group_resource();
        let stored = match &datastore {
            Datastore::Memory => return Err(Error::InMemory),
            Datastore::Sqlite(path) => Sqlite::live_objects(path, &group_resource).await?,
            Datastore::Postgres(address) => Postgres::live_objects(address, &group_resource).await?,
        };
        for one in stored {
            let one = keys.open(one).await?;
            let draft = Draft::parse(&one.namespace, &one.name, one.value.into());
            account.add(&resource, &Arc::new(draft.into_object(one.revision)));
        }
    }
    Ok(account)
}

/// The user with the groups that such a user always has.
fn user_of(name: String, mut groups: Vec<String>) -> User {
    if let Some((namespace, _)) =
        name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'))
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    if name.starts_with("system:node:") {
        groups.push("system:nodes".to_owned());
    }
    groups.push(if name == "system:anonymous" { "system:unauthenticated" } else { AUTHENTICATED }.to_owned());
    User { name, groups, ..User::default() }
}

impl DeedArgs {
    fn attributes<'a>(&'a self, user: &'a User, target: &'a DeedTarget) -> Attributes<'a> {
        let path = Attributes::of_path(user, &self.verb, &target.path);
        let attributes = Attributes {
            group: &target.group,
            resource: &target.resource,
            subresource: &self.subresource,
            name: &target.name,
            ..path
        };
        attributes.within(&self.namespace)
    }

    fn target(&self) -> DeedTarget {
        if self.resource.starts_with('/') {
            return DeedTarget { path: self.resource.clone(), ..DeedTarget::default() };
        }
        let (kind, name) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let (resource, group) = match kind.split_once('.') {
            Some((resource, group)) => (resource, group.to_owned()),
            None => (kind, group_of(kind)),
        };
        DeedTarget { resource: resource.to_owned(), group, name: name.to_owned(), path: String::new() }
    }
}

#[derive(Debug, Default)]
struct DeedTarget {
    resource: String,
    group: String,
    name: String,
    path: String,
}

/// The group of a built-in resource; that of the core if there is one.
fn group_of(resource: &str) -> String {
    let definitions = built_in::definitions();
    let groups = definitions.iter().filter(|one| &*one.plural == resource).map(|one| one.group().as_str());
    groups.min_by_key(|group| group.len()).unwrap_or_default().to_owned()
}

fn why(account: &Account, user: &User, deed: &DeedArgs) -> String {
    let target = deed.target();
    let attributes = deed.attributes(user, &target);
    let is_master = user.is_in(MASTERS);
    let reasons = match is_master {
        true => vec![format!("members of {MASTERS} may do everything")],
        false => account.reasons(&attributes),
    };
    let missing = if is_master { None } else { account.missing_roles(&attributes) };
    let value = json!({
        "allowed": !reasons.is_empty(),
        "reasons": Value::Array(reasons.iter().map(|reason| reason.as_str().into()).collect()),
        "groups": Value::Array(user.groups.iter().map(|group| group.as_str().into()).collect()),
        "problem": missing.as_deref().unwrap_or_default(),
    });
    deed.output.render(&value, |_| {
        let mut text = format!("{}\n", if reasons.is_empty() { "no" } else { "yes" });
        for reason in &reasons {
            let _ = writeln!(text, "{reason}");
        }
        if reasons.is_empty() {
            let _ = writeln!(text, "groups: {}", user.groups.join(", "));
        }
        if let Some(missing) = missing {
            let _ = writeln!(text, "RBAC: {missing}");
        }
        text
    })
}

fn who_can(account: &Account, deed: &DeedArgs) -> String {
    let (nobody, target) = (User::default(), deed.target());
    let grants = account.grants(&deed.attributes(&nobody, &target));
    let pairs = grants
        .iter()
        .map(|(subject, grant)| json!({"subject": subject.to_string(), "grant": grant.to_string()}));
    let value = Value::Array(pairs.collect());
    deed.output.render(&value, |_| {
        let rows: Vec<_> =
            grants.iter().map(|(subject, grant)| [subject.to_string(), grant.to_string()]).collect();
        aligned(&rows)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::auth::rbac::{CLUSTER_ROLES, ROLE_BINDINGS};
    use crate::revision::Revision;

    #[derive(clap::Parser)]
    struct Line {
        #[command(subcommand)]
        command: AuthCommand,
    }

    fn account() -> Account {
        let mut account = Account::default();
        let mut add = |resource, namespace: &str, name: &str, object: Value| {
            let draft = Draft::of_json(namespace, name, object.to_string().into());
            account.add(&resource, &Arc::new(draft.into_object(Revision(1))));
        };
        let rules = json!([{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"]}]);
        add(CLUSTER_ROLES, "", "reader", json!({"metadata": {"name": "reader"}, "rules": rules}));
        let subjects = json!([{"kind": "User", "name": "alice"}, {"kind": "ServiceAccount", "name": "s"}]);
        let role = json!({"kind": "ClusterRole", "name": "reader"});
        let binding =
            json!({"metadata": {"name": "b", "namespace": "n"}, "roleRef": role, "subjects": subjects});
        add(ROLE_BINDINGS, "n", "b", binding);
        account
    }

    fn answer(line: &[&str]) -> String {
        let line = ["rowplane"].iter().chain(line);
        match Line::try_parse_from(line).map(|line| line.command).expect("a command") {
            AuthCommand::Why(WhyArgs { user, groups, deed }) => {
                why(&account(), &user_of(user, groups), &deed)
            }
            AuthCommand::WhoCan(WhoCanArgs { deed }) => who_can(&account(), &deed),
            AuthCommand::RotateKeys(arguments) => rotate_keys(&arguments).expect("keys"),
        }
    }

    #[test]
    fn why_tells_the_bindings() {
        let by = "RBAC: allowed by RoleBinding \"b/n\" of ClusterRole \"reader\" to";
        assert_eq!(
            answer(&["why", "--as", "alice", "get", "deployments", "-n", "n"]),
            format!("yes\n{by} User \"alice\"\n")
        );
        assert_eq!(
            answer(&[
                "why",
                "--as",
                "system:serviceaccount:n:s",
                "get",
                "deployments.apps/x",
                "--subresource",
                "scale",
                "-n",
                "n"
            ]),
            format!("yes\n{by} ServiceAccount \"s/n\"\n")
        );
        assert_eq!(
            answer(&["why", "--as", "alice", "get", "deployments"]),
            "no\ngroups: system:authenticated\n"
        );
        assert!(answer(&["why", "--as", "a", "--as-group", MASTERS, "get", "/x"]).starts_with("yes\n"));
    }

    #[test]
    fn who_can_names_everybody() {
        let grant = "RoleBinding \"b/n\" of ClusterRole \"reader\" to";
        assert_eq!(
            answer(&["who-can", "get", "deployments", "-n", "n"]),
            format!(
                "User \"alice\"          {grant} User \"alice\"\nServiceAccount \"s/n\"  {grant} ServiceAccount \"s/n\"\n"
            )
        );
        assert_eq!(answer(&["who-can", "delete", "deployments", "-n", "n"]), "");
    }
}
