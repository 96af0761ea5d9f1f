//! The hosts of a database. One of them is the primary; after a failover it is another one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rand::seq::SliceRandom as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Executor as _, Row as _};
use tokio::time::timeout;

use super::address::{Place, Route, Transport, Wanted};
use super::lineage::{self, Refusal};
use super::link;

/// How long the only host may take to accept a connection.
const ALONE: Duration = Duration::from_secs(5);
/// How long one of several hosts may take, so that one that is silent does not keep the others from being asked.
const AMONG_OTHERS: Duration = Duration::from_secs(2);

/// The use of a database's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A server writes, so it needs the primary.
    Serving,
    /// Reading everything once; a standby will do.
    Reading,
}

pub struct Hosts {
    hosts: Vec<Arc<Host>>,
    wanted: Wanted,
    /// The place of the host that served last. It is asked first.
    latest: AtomicUsize,
}

impl Hosts {
    /// Fails with a reason for the operator if a server could not use what the URL asks for.
    #[expect(
        clippy::disallowed_methods,
        reason = "the host that is tried first has to differ between servers"
    )]
    pub fn new(route: Route, used: Use) -> Result<Self, String> {
        let mut places = route.places;
        if route.shuffled {
            places.shuffle(&mut rand::rng());
        }
        let wanted = match (route.wanted, used) {
            (Wanted::ReadOnly | Wanted::Standby | Wanted::PreferStandby, Use::Serving) => {
                return Err(format!(
                    "target_session_attrs={} leads to a database that cannot be written to, and a server writes: say read-write or \
                     primary",
                    route.wanted
                ));
            }
            // A standby would be refused anyway, and another host may be the primary.
            (Wanted::Any, Use::Serving) if places.len() > 1 => Wanted::Primary,
            (wanted, _) => wanted,
        };
        let usual = if places.len() > 1 { AMONG_OTHERS } else { ALONE };
        let limit = route.limit.unwrap_or(usual);
        let hosts = places.into_iter().map(|place| Arc::new(Host::new(place, limit))).collect();
        Ok(Self { hosts, wanted, latest: AtomicUsize::new(0) })
    }

    /// The hosts in the order in which they are to be tried, and what each must be.
    pub fn in_order(&self) -> Vec<(Arc<Host>, Wanted)> {
        let latest = self.latest.load(Ordering::Relaxed);
        let others = self.hosts.iter().enumerate().filter(|(place, _)| *place != latest);
        let ordered: Vec<&Arc<Host>> =
            self.hosts.get(latest).into_iter().chain(others.map(|(_, host)| host)).collect();
        let all = |wanted| ordered.iter().map(move |host| (Arc::clone(host), wanted));
        match self.wanted {
            Wanted::PreferStandby => all(Wanted::Standby).chain(all(Wanted::Any)).collect(),
            wanted => all(wanted).collect(),
        }
    }

    /// Notes that this host serves.
    pub fn note(&self, serving: &Arc<Host>) {
        if let Some(place) = self.hosts.iter().position(|host| Arc::ptr_eq(host, serving)) {
            let before = self.latest.swap(place, Ordering::Relaxed);
            if before != place {
                tracing::info!(
                    host = serving.name,
                    before = self.hosts[before].name,
                    "another host is the database now"
                );
            }
        }
    }

    /// Whether this host is the one that served last.
    pub fn is_latest(&self, host: &Arc<Host>) -> bool {
        self.hosts.get(self.latest.load(Ordering::Relaxed)).is_some_and(|latest| Arc::ptr_eq(latest, host))
    }
}

/// One host, and the way to it.
pub struct Host {
    pub name: String,
    place: Place,
    /// Whether connections go over TLS. Where either may be right, the first connection that is accepted decides.
    secured: OnceLock<bool>,
    limit: Duration,
}

impl Host {
    fn new(place: Place, limit: Duration) -> Self {
        let secured = match place.transport {
            Transport::Plain => OnceLock::from(false),
            Transport::Tls(_) => OnceLock::from(true),
            Transport::PlainElseTls(_) => OnceLock::new(),
        };
        Self { name: place.name.clone(), place, secured, limit }
    }

    /// Options that lead to this host as its connections do, for one connection.
    pub async fn options(&self) -> Result<PgConnectOptions, sqlx::Error> {
        self.within_limit(self.options_by(self.secured.get() == Some(&true))).await
    }

    async fn options_by(&self, secured: bool) -> Result<PgConnectOptions, sqlx::Error> {
        match &self.place.transport {
            Transport::Tls(target) | Transport::PlainElseTls(target) if secured => {
                Ok(link::open(target, &self.place.options).await?)
            }
            _ => Ok(self.place.options.clone()),
        }
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        self.within_limit(self.open()).await
    }

    /// Opens a connection if the host is what is wanted.
    pub async fn connect_to(&self, wanted: Wanted) -> Result<PgConnection, lineage::Error> {
        self.within_limit(async {
            let mut connection = self.open().await?;
            check(&mut connection, wanted).await?;
            Ok(connection)
        })
        .await
    }

    async fn within_limit<T, E: From<sqlx::Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        timeout(self.limit, work).await.unwrap_or_else(|_| Err(unanswered(self.limit).into()))
    }

    async fn open(&self) -> Result<PgConnection, sqlx::Error> {
        if let Some(secured) = self.secured.get() {
            return self.open_by(*secured).await;
        }
        let (secured, connected) = match self.open_by(false).await {
            // The server is there, but does not accept connections in plain text.
            Err(plain @ sqlx::Error::Database(_)) => (true, self.open_by(true).await.map_err(|_| plain)),
            connected => (false, connected),
        };
        if connected.is_ok() {
            let _ = self.secured.set(secured);
        }
        connected
    }

    async fn open_by(&self, secured: bool) -> Result<PgConnection, sqlx::Error> {
        self.options_by(secured).await?.connect().await
    }
}

/// The error of a database that does not answer in time.
pub fn unanswered(limit: Duration) -> sqlx::Error {
    let text = format!("no answer within {} s", limit.as_secs());
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
}

/// Checks what the host is. The session must have its role's defaults, as in libpq.
async fn check(connection: &mut PgConnection, wanted: Wanted) -> Result<(), lineage::Error> {
    if wanted == Wanted::Any {
        return Ok(());
    }
    let asked =
        sqlx::raw_sql("SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'");
    let row = connection.fetch_one(asked).await?;
    judge(wanted, row.try_get(0)?, row.try_get(1)?).map_err(lineage::Error::from)
}

fn judge(wanted: Wanted, standby: bool, read_only: bool) -> Result<(), Refusal> {
    let fits = match wanted {
        Wanted::Any | Wanted::PreferStandby => true,
        Wanted::Primary | Wanted::ReadWrite if standby => return Err(Refusal::Standby),
        Wanted::Primary => true,
        Wanted::ReadWrite => !read_only,
        Wanted::ReadOnly => standby || read_only,
        Wanted::Standby => standby,
    };
    if fits { Ok(()) } else { Err(Refusal::Unwanted(wanted)) }
}

#[cfg(test)]
mod tests {
    use super::super::Address;
    use super::*;

    fn hosts(url: &str, used: Use) -> Result<Hosts, String> {
        Hosts::new(Address::from(url).resolve().unwrap(), used)
    }

    fn order(hosts: &Hosts) -> Vec<(String, Wanted)> {
        hosts.in_order().into_iter().map(|(host, wanted)| (host.name.clone(), wanted)).collect()
    }

    #[tokio::test]
    async fn the_host_that_served_last_is_asked_first() {
        let hosts = hosts("postgres://u@a,b:6,c/d?sslmode=require", Use::Serving).unwrap();
        let names = |hosts: &Hosts| order(hosts).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&hosts), ["a:5432", "b:6", "c:5432"]);
        assert!(order(&hosts).iter().all(|(_, wanted)| *wanted == Wanted::Primary), "a standby is of no use");
        hosts.note(&hosts.hosts[2]);
        assert_eq!(names(&hosts), ["c:5432", "a:5432", "b:6"]);
        assert!(hosts.is_latest(&hosts.hosts[2]) && !hosts.is_latest(&hosts.hosts[0]));
    }

    #[tokio::test]
    async fn a_server_wants_the_primary_and_a_reader_what_it_says() {
        let url = |wanted: &str| format!("postgres://u@a,b/d?sslmode=require&target_session_attrs={wanted}");
        for wanted in ["standby", "read-only", "prefer-standby"] {
            let error = hosts(&url(wanted), Use::Serving).err().unwrap();
            assert!(error.contains(wanted) && error.contains("say read-write or primary"), "{error}");
        }
        let read = order(&hosts(&url("prefer-standby"), Use::Reading).unwrap());
        let read: Vec<_> = read.iter().map(|(name, wanted)| (&**name, *wanted)).collect();
        let (standby, any) = (Wanted::Standby, Wanted::Any);
        assert_eq!(read, [("a:5432", standby), ("b:5432", standby), ("a:5432", any), ("b:5432", any)]);
    }

    #[test]
    fn what_fits() {
        // On a primary; on one whose sessions are read-only; on a standby.
        for (wanted, fits) in [
            (Wanted::Any, [true, true, true]),
            (Wanted::ReadWrite, [true, false, false]),
            (Wanted::Primary, [true, true, false]),
            (Wanted::ReadOnly, [false, true, true]),
            (Wanted::Standby, [false, false, true]),
        ] {
            let found = [(false, false), (false, true), (true, false)]
                .map(|(standby, read_only)| judge(wanted, standby, read_only).is_ok());
            assert_eq!(found, fits, "{wanted}");
        }
    }
}
