//! What guards writes, judged by the record that a trigger keeps of every row: quotas count what there is and are not
//! exceeded, a policy judges every create that is committed after it, and nothing comes into a namespace that ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::history::{Promise, Violation};
use super::records::Row;

/// Where objects are counted and judged.
pub const NAMESPACE: &str = "guarded";
/// What namespaces are called that end.
pub const ENDING: &str = "ends-";
/// How many rows before a violation are told.
const BEFORE: usize = 16;
/// What the quota counts.
pub const COUNTED: &str = "count/secrets";
/// The label of an object, and of the policy that demands it.
pub const PARITY: &str = "parity";

/// The resources that guard, and those that are guarded.
pub const RESOURCES: [&str; 6] = [
    "secrets",
    "namespaces",
    "resourcequotas",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "admissionconfigurations",
];

/// The row in a few words.
fn short(row: &Row) -> String {
    let Row { revision, plural, namespace, name, object, .. } = row;
    let what = match object {
        Some(object) => object["metadata"]["labels"][PARITY].as_str().unwrap_or("there"),
        None => "gone",
    };
    format!("{revision} {plural} {namespace}/{name} {what}")
}

#[derive(Debug)]
struct Quota {
    uid: String,
    hard: i64,
}

/// The state after a revision.
#[derive(Default)]
struct State {
    secrets: BTreeMap<String, BTreeSet<String>>,
    quota: Option<Quota>,
    policy: Option<String>,
    is_bound: bool,
    ended: BTreeSet<String>,
}

/// What has been judged, so that nobody takes silence for a verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    pub creates_under_policy: usize,
    pub creates_under_quota: usize,
    pub counts: usize,
    pub namespaces: usize,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { creates_under_policy, creates_under_quota, counts, namespaces } = self;
        write!(
            f,
            "{creates_under_policy} creates under a policy, {creates_under_quota} under a quota, {counts} counts, \
             {namespaces} namespaces ended"
        )
    }
}

/// `answered` says from which revision on a quota has to be right: that of the answer of its creation. A quota whose
/// creation was not answered may lack what was written at the same moment, until it is counted again.
pub fn judge(rows: &[Row], answered: &BTreeMap<String, u64>) -> (Judged, Vec<Violation>) {
    let (mut state, mut judged, mut violations) = (State::default(), Judged::default(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        let story = state.step(row, answered, &mut judged);
        violations.extend(story.map(|story| {
            let before: Vec<String> = rows[at.saturating_sub(BEFORE)..at].iter().map(short).collect();
            let story = format!("guards: {story} at revision {}: {row:?}, after {before:?}", row.revision);
            Violation::new(Promise::Guarded, story)
        }));
    }
    (judged, violations)
}

impl State {
    /// Takes in a row. Says what is wrong with it.
    fn step(&mut self, row: &Row, answered: &BTreeMap<String, u64>, judged: &mut Judged) -> Option<String> {
        let is_right = |uid: &str| answered.get(uid).is_some_and(|from| *from <= row.revision);
        let Row { namespace, name, object, .. } = row;
        match row.plural.as_str() {
            "secrets" => {
                let there = self.secrets.entry(namespace.clone()).or_default();
                let Some(object) = object else {
                    there.remove(name);
                    return None;
                };
                let count = there.len() as i64 + 1;
                match there.insert(name.clone()) {
                    true => self.created(object, namespace, count, is_right, judged),
                    false => None,
                }
            }
            "resourcequotas" if namespace == NAMESPACE => {
                let Some(object) = object else {
                    self.quota = None;
                    return None;
                };
                let figure = |part: &str| {
                    let text = object["status"][part][COUNTED].as_str()?;
                    text.parse::<i64>().ok()
                };
                self.quota = figure("hard").map(|hard| Quota { uid: row.uid.clone(), hard });
                let real = self.secrets.get(NAMESPACE).map_or(0, BTreeSet::len) as i64;
                judged.counts += usize::from(is_right(&row.uid));
                let is_wrong = is_right(&row.uid) && figure("used") != Some(real);
                is_wrong.then(|| format!("a quota counts {:?} of {real} objects", figure("used")))
            }
            "validatingadmissionpolicies" if name == PARITY => {
                let parity = object.as_ref().and_then(|policy| policy["metadata"]["labels"][PARITY].as_str());
                self.policy = parity.map(str::to_owned);
                None
            }
            "validatingadmissionpolicybindings" if name == PARITY => {
                self.is_bound = object.is_some();
                None
            }
            "namespaces" if name.starts_with(ENDING) => self.ends(name, object.as_ref(), judged),
            _ => None,
        }
    }

    fn created(
        &self,
        object: &Value,
        namespace: &str,
        count: i64,
        is_right: impl Fn(&str) -> bool,
        judged: &mut Judged,
    ) -> Option<String> {
        if self.ended.contains(namespace) {
            return Some("an object came into a namespace that ends".to_owned());
        }
        if namespace != NAMESPACE {
            return None;
        }
        if let Some(parity) = self.policy.as_deref().filter(|_| self.is_bound) {
            judged.creates_under_policy += 1;
            if object["metadata"]["labels"][PARITY] != *parity {
                return Some(format!("an object came in while the policy wanted {parity}"));
            }
        }
        let quota = self.quota.as_ref().filter(|quota| is_right(&quota.uid))?;
        judged.creates_under_quota += 1;
        (count > quota.hard).then(|| format!("the object is number {count} of {}", quota.hard))
    }

    fn ends(&mut self, name: &str, object: Option<&Value>, judged: &mut Judged) -> Option<String> {
        let is_ending = object.is_none_or(|object| object["metadata"]["deletionTimestamp"].is_string());
        if is_ending && self.ended.insert(name.to_owned()) {
            judged.namespaces += 1;
        }
        let left = self.secrets.get(name).map_or(0, BTreeSet::len);
        (object.is_none() && left > 0).then(|| format!("a namespace is gone, and {left} objects are left"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(revision: u64, plural: &str, (namespace, name): (&str, &str), object: Value) -> Row {
        let object = Some(object).filter(|object| !object.is_null());
        let (plural, namespace, name) = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        Row { revision, plural, namespace, name, uid: "u".to_owned(), object }
    }

    fn secret(revision: u64, name: &str, parity: &str) -> Row {
        let object = json!({"metadata": {"labels": {PARITY: parity}}});
        put(revision, "secrets", (NAMESPACE, name), object)
    }

    fn quota(revision: u64, hard: i64, used: i64) -> Row {
        let status = json!({"hard": {COUNTED: hard.to_string()}, "used": {COUNTED: used.to_string()}});
        put(revision, "resourcequotas", (NAMESPACE, "q"), json!({"status": status}))
    }

    fn policy(revision: u64, parity: &str) -> Row {
        let object = json!({"metadata": {"labels": {PARITY: parity}}});
        put(revision, "validatingadmissionpolicies", ("", PARITY), object)
    }

    fn found(rows: &[Row], answered: u64) -> usize {
        judge(rows, &BTreeMap::from([("u".to_owned(), answered)])).1.len()
    }

    #[test]
    fn quotas_that_are_exceeded_or_miscount_are_found() {
        let good = [quota(1, 2, 0), secret(2, "a", ""), secret(3, "b", ""), quota(4, 2, 2)];
        assert_eq!(found(&good, 1), 0);
        let one_more = [&good[..], &[secret(5, "c", ""), quota(6, 2, 3)]].concat();
        assert_eq!(found(&one_more, 1), 1);
        let leaked =
            [&good[..], &[put(5, "secrets", (NAMESPACE, "a"), Value::Null), quota(6, 2, 2)]].concat();
        assert_eq!(found(&leaked, 1), 1);
        assert_eq!(found(&leaked, 7), 0, "nobody was promised anything yet");
    }

    #[test]
    fn writes_that_escape_a_policy_are_found() {
        let bound = put(1, "validatingadmissionpolicybindings", ("", PARITY), json!({}));
        let good =
            [bound, policy(2, "even"), secret(3, "a", "even"), policy(4, "odd"), secret(5, "b", "odd")];
        assert_eq!(found(&good, 0), 0);
        assert_eq!(found(&[&good[..], &[secret(6, "c", "even")]].concat(), 0), 1);
        assert_eq!(found(&good[1..], 0), 0);
        assert_eq!(found(&[policy(2, "even"), secret(3, "a", "odd")], 0), 0, "without a binding");
    }

    #[test]
    fn what_comes_into_a_namespace_that_ends_is_found() {
        let ending = json!({"metadata": {"deletionTimestamp": "2026-11-23T00:00:00Z"}});
        let inside = |revision, object| put(revision, "secrets", ("ends-1", "a"), object);
        let namespace = |revision, object| put(revision, "namespaces", ("", "ends-1"), object);
        let good = [
            namespace(1, json!({"metadata": {}})),
            inside(2, json!({})),
            namespace(3, ending.clone()),
            inside(4, json!({})),
            inside(5, Value::Null),
            namespace(6, Value::Null),
        ];
        assert_eq!(found(&good, 0), 0);
        assert_eq!(found(&[&good[..1], &good[2..]].concat(), 0), 1, "created after the end");
        let left = [good[0].clone(), good[1].clone(), good[2].clone(), good[5].clone()];
        assert_eq!(found(&left, 0), 1, "left behind");
    }
}
