//! How long history is kept: floors by the age of revisions, and marks that become rarer as they become older.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use super::super::{Backend, HIDDEN_GROUP, ResourceId};
use super::{Holding, PastError, Present};
use crate::metrics::Metrics;
use crate::revision::Revision;
use crate::schema::names::GroupResource;

const SECOND_MS: i64 = 1000;
const DAY_MS: i64 = 86_400 * SECOND_MS;
/// How far back marks are looked at that have come to the age at which they become rarer: servers thin them every hour or
/// oftener, if they run.
const THINNED_MS: i64 = DAY_MS;
/// The time that `writers.used_ms` may be behind the last use of its row, and more than that.
const WRITERS_MARGIN_MS: i64 = 3 * 3600 * SECOND_MS;

/// How long history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The first rule that matches a resource counts; the last one matches all.
    rules: Vec<KeepRule>,
    /// The bytes of history above which the oldest goes; `None` for no limit.
    pub max_bytes: Option<u64>,
}

/// How long the history of some resources is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepRule {
    /// `plural.group`, or `*`.
    pattern: String,
    /// `None` keeps it for ever.
    keep: Option<Duration>,
}

impl Retention {
    pub const DEFAULT_KEEP: &str = "leases.coordination.k8s.io=5m,events=1h,*=30d";
    pub const DEFAULT_MAX_BYTES: u64 = 8 << 30;

    /// Parses `leases.coordination.k8s.io=5m,events=1h,*=30d`.
    pub fn parse_keep(text: &str) -> Result<Vec<KeepRule>, String> {
        let rules: Vec<KeepRule> = text.split(',').map(KeepRule::parse).collect::<Result<_, _>>()?;
        match rules.iter().position(|rule| rule.pattern == "*") {
            Some(last) if last + 1 == rules.len() => Ok(rules),
            Some(_) => Err("`*` must come last, since it matches every resource".to_owned()),
            None => Err("the last rule must be for `*`, all other resources".to_owned()),
        }
    }

    pub fn new(rules: Vec<KeepRule>, max_bytes: Option<u64>) -> Self {
        Self { rules, max_bytes }
    }

    /// How long the history of a resource is kept; `None` for ever. Nobody reads that of hidden rows.
    fn keep(&self, resource: &GroupResource) -> Option<Duration> {
        if *resource.group == *HIDDEN_GROUP {
            return Some(Duration::ZERO);
        }
        let name = resource.to_string();
        // Events of both groups are the same objects.
        let name = if name == "events.events.k8s.io" { "events" } else { &*name };
        self.rules.iter().find(|rule| rule.pattern == "*" || rule.pattern == name)?.keep
    }
}

impl Default for Retention {
    fn default() -> Self {
        let rules = Self::parse_keep(Self::DEFAULT_KEEP).unwrap_or_default();
        Self::new(rules, Some(Self::DEFAULT_MAX_BYTES))
    }
}

impl KeepRule {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not like pods=12h, deployments.apps=30d or *=forever");
        let (pattern, keep) = text.trim().split_once('=').ok_or_else(wrong)?;
        if pattern.is_empty() || pattern.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let keep = match keep {
            "forever" => None,
            _ => {
                let (number, unit) = keep.split_at_checked(keep.len().saturating_sub(1)).ok_or_else(wrong)?;
                let seconds = match unit {
                    "s" => 1,
                    "m" => 60,
                    "h" => 3600,
                    "d" => 86_400,
                    _ => return Err(wrong()),
                };
                let number: u32 = number.parse().map_err(|_| wrong())?;
                Some(Duration::from_secs(u64::from(number) * seconds))
            }
        };
        Ok(Self { pattern: pattern.to_owned(), keep })
    }
}

/// Raises the floors as far as the retention allows: a resource can be read at every time that is not older than its keep.
/// Without a retention, as far as watches can be resumed.
pub async fn raise_floors(backend: &dyn Backend, retention: Option<&Retention>) -> Result<(), PastError> {
    let compacted = backend.clock().await?.compacted;
    let Some(retention) = retention else { return backend.raise_floors(compacted, &[]).await };
    let now_ms = backend.present().await?.now_ms;
    let mut known: Vec<(Option<Duration>, Revision)> = Vec::new();
    let mut own = Vec::new();
    for (id, resource) in backend.resources().await? {
        let keep = retention.keep(&resource);
        let floor = match known.iter().find(|(known, _)| *known == keep) {
            Some((_, floor)) => *floor,
            None => {
                let floor = floor_of(backend, keep, now_ms, compacted).await?;
                known.push((keep, floor));
                floor
            }
        };
        own.push((id, floor));
    }
    own.sort_unstable();
    backend.raise_floors(Revision(0), &own).await
}

/// Raises the floor of the resource with the most bytes while all history together has more than its budget, until nine tenths
/// of the budget are left.
pub async fn trim(backend: &dyn Backend, retention: &Retention, metrics: &Metrics) -> Result<(), PastError> {
    let mut holdings = backend.holdings().await?;
    let names: HashMap<ResourceId, GroupResource> = backend.resources().await?.into_iter().collect();
    report(backend, &holdings, &names, metrics).await?;
    let (Some(most), Some(size)) = (retention.max_bytes, backend.size().await?) else { return Ok(()) };
    let total: u64 = holdings.iter().map(|holding| holding.bytes).sum();
    // The size of the whole database is measured, and the history's is estimated.
    if size <= most || total <= most {
        return Ok(());
    }
    let mut excess = total - most / 10 * 9;
    let compacted = backend.clock().await?.compacted;
    holdings.sort_unstable_by_key(|holding| Reverse(holding.bytes));
    for Holding { resource, changes, bytes, .. } in holdings {
        let each = (bytes / changes.max(1)).max(1);
        let goes = excess.div_ceil(each).min(changes);
        let Some(last) = goes.checked_sub(1) else { break };
        let Some(floor) = backend.nth_change(resource, last).await? else { continue };
        let floor = floor.min(compacted);
        backend.raise_floors(Revision(0), &[(resource, floor)]).await?;
        let name = names.get(&resource).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(resource = name, revision = %floor, "history is over its budget, so the oldest of it goes");
        metrics.history_trimmed(&name).increment(1);
        excess = excess.saturating_sub(goes * each);
    }
    Ok(())
}

/// Reports how much history there is.
async fn report(
    backend: &dyn Backend,
    holdings: &[Holding],
    names: &HashMap<ResourceId, GroupResource>,
    metrics: &Metrics,
) -> Result<(), PastError> {
    let Present { moment, now_ms } = backend.present().await?;
    for Holding { resource, floor, changes, bytes } in holdings {
        let Some(name) = names.get(resource).filter(|name| *name.group != *HIDDEN_GROUP) else { continue };
        let (floor, _) = backend.moment_of((*floor).min(moment.revision)).await?;
        let oldest = (now_ms - floor.committed_ms).max(0) as f64 / 1000.0;
        metrics.history(&name.to_string(), *changes, *bytes, oldest);
    }
    Ok(())
}

/// The newest revision at or before the oldest time that is kept.
async fn floor_of(
    backend: &dyn Backend,
    keep: Option<Duration>,
    now_ms: i64,
    compacted: Revision,
) -> Result<Revision, PastError> {
    let Some(keep) = keep else { return Ok(Revision(0)) };
    if keep.is_zero() {
        return Ok(compacted);
    }
    let keep_ms = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    match backend.moment_at(now_ms.saturating_sub(keep_ms)).await {
        Ok(moment) => Ok(moment.revision.min(compacted)),
        Err(PastError::BeforeFirst) => Ok(Revision(0)),
        Err(error) => Err(error),
    }
}

/// Statements that raise floors, none of them above `clock.compacted`. The functions are the database's for the greater and
/// the lesser of two numbers.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(in super::super) fn raising(
    greater: &str,
    lesser: &str,
    others: Revision,
    own: &[(ResourceId, Revision)],
) -> Vec<String> {
    let compacted = "(SELECT compacted FROM clock)";
    let mut statements = Vec::new();
    let ids: Vec<String> = own.iter().map(|(id, _)| id.0.to_string()).collect();
    if !own.is_empty() {
        let rows: Vec<String> = own.iter().map(|(id, floor)| format!("({}, {})", id.0, floor.0)).collect();
        // A resource that gets a row of its own had the floor of all others.
        statements.push(format!(
            "INSERT INTO floors AS f (resource, revision) \
             SELECT n.column1, {greater}(b.revision, {lesser}(n.column2, {compacted})) \
             FROM (VALUES {}) AS n CROSS JOIN floors b WHERE b.resource = 0 ORDER BY 1 \
             ON CONFLICT (resource) DO UPDATE SET revision = {greater}(f.revision, {lesser}(excluded.revision, {compacted}))",
            rows.join(", ")
        ));
    }
    let except = if ids.is_empty() { "-1".to_owned() } else { ids.join(", ") };
    statements.push(format!(
        "UPDATE floors SET revision = {lesser}({}, {compacted}) \
         WHERE resource NOT IN ({except}) AND revision < {lesser}({}, {compacted})",
        others.0, others.0
    ));
    statements
}

/// A range of marks of which only the last one in each period of a width is kept.
pub(in super::super) struct Thinning {
    pub from_ms: i64,
    pub to_ms: i64,
    pub width_ms: i64,
}

impl Thinning {
    /// One mark in ten seconds after a week, one a minute after 90 days.
    pub fn all(now_ms: i64) -> [Self; 2] {
        [(7 * DAY_MS, 10 * SECOND_MS), (90 * DAY_MS, 60 * SECOND_MS)].map(|(age, width_ms)| Self {
            from_ms: now_ms - age - THINNED_MS,
            to_ms: now_ms - age,
            width_ms,
        })
    }
}

/// Statements that remove marks and writers that are not needed.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(in super::super) fn thinning(now_ms: i64) -> Vec<String> {
    let marks = Thinning::all(now_ms).map(|Thinning { from_ms, to_ms, width_ms }| {
        format!(
            "DELETE FROM marks WHERE at_ms >= {from_ms} AND at_ms < {to_ms} AND EXISTS ( \
             SELECT 1 FROM marks n WHERE n.at_ms > marks.at_ms AND n.at_ms < (marks.at_ms / {width_ms} + 1) * {width_ms} \
             AND n.at_ms < {to_ms})"
        )
    });
    let writers = format!(
        "DELETE FROM writers WHERE used_ms < COALESCE( \
         (SELECT committed_ms FROM changes ORDER BY resource_version LIMIT 1), {now_ms}) - {WRITERS_MARGIN_MS}"
    );
    marks.into_iter().chain([writers]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rules = Retention::parse_keep("leases.coordination.k8s.io=5m,events=1h,roles.x=forever,*=30d");
        let retention = Retention::new(rules.expect("rules"), None);
        let keep = |group: &str, plural: &str| {
            retention.keep(&GroupResource::new(group, plural)).map(|keep| keep.as_secs())
        };
        assert_eq!(keep("coordination.k8s.io", "leases"), Some(300));
        assert_eq!(keep("", "events"), Some(3600));
        assert_eq!(keep("events.k8s.io", "events"), Some(3600));
        assert_eq!(keep("x", "roles"), None);
        assert_eq!(keep("apps", "deployments"), Some(30 * 86_400));
        assert_eq!(keep(HIDDEN_GROUP, "claims"), Some(0));
    }

    #[test]
    fn rules_that_cannot_be_meant_are_refused() {
        for text in ["", "*", "*=", "*=5", "*=m", "*=-1h", "pods=1h", "*=1h,pods=1h", "=1h,*=1h", "*=ä"] {
            assert!(Retention::parse_keep(text).is_err(), "{text}");
        }
        assert!(Retention::parse_keep(Retention::DEFAULT_KEEP).is_ok());
        assert_eq!(Retention::default().rules.len(), 3);
    }
}
