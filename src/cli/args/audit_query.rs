//! The arguments of `rowplane audit`.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::{StoreArgs, duration};
use crate::cli::error::Error;
use crate::cli::output::{Output, OutputArgs};
use crate::server::datastore::Datastore;
use crate::storage::AuditQuery;

/// Arguments of `rowplane audit`: conditions that all events have to meet.
#[derive(Clone, Debug, Args)]
pub struct AuditQueryArgs {
    /// Shows only requests that this user sent, under the name of the user who authenticated
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Shows only requests with this verb, such as create, update, patch, delete or deletecollection
    #[arg(long, value_name = "VERB")]
    verb: Option<String>,
    /// Shows only requests for this object, for the objects of a namespace (pods/default) or for all of a resource (nodes);
    /// resources outside the core group have their group: deployments.apps/prod/web
    #[arg(long, value_name = "RESOURCE/NAMESPACE/NAME")]
    object: Option<String>,
    /// Shows only events newer than this duration, such as 5m or 24h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,
    /// The maximum number of events to show, of which the newest are taken
    #[arg(long, value_name = "EVENTS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::storage::audit::MOST)))]
    limit: u32,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl AuditQueryArgs {
    pub fn into_query(self) -> Result<(Datastore, AuditQuery, Output), Error> {
        let Self { store, user, verb, object, since, limit, output } = self;
        let since = since.map_or(0, |ago| {
            Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH).as_microsecond()
        });
        Ok((store.datastore()?, AuditQuery { user, verb, object, since, limit }, output.output))
    }
}
