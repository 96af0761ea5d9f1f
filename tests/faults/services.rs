//! What Services are given, judged by the record that a trigger keeps of every row: no two of them have one address or one
//! port at any revision, each has claimed what it has, and what it gives back is given back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use serde_json::Value;

use super::history::{Promise, Violation};
use super::records::Row;

/// Where the Services are.
pub const NAMESPACE: &str = "serving";
/// What Services are called that come, change and go when all faults are over.
pub const QUIET: &str = "quiet-";
/// The last two are claims: of addresses, and of ports, which nobody serves.
pub const RESOURCES: [&str; 3] = ["services", "ipaddresses", "nodeports"];
/// Of 10.0.0.0/24, without its first and last, and without that of the Service `kubernetes`.
const ADDRESSES: RangeInclusive<Ipv4Addr> = Ipv4Addr::new(10, 0, 0, 2)..=Ipv4Addr::new(10, 0, 0, 254);
const PORTS: RangeInclusive<u64> = 30_000..=32_767;

/// What has been judged, so that nobody takes silence for a verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    pub writes: usize,
    pub addresses: usize,
    pub ports: usize,
    pub given_back: usize,
    /// Claims that wait for the sweep, minutes later.
    pub left: usize,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, addresses, ports, given_back, left } = self;
        write!(
            f,
            "{writes} writes of Services, which got {addresses} addresses and {ports} ports; {given_back} claims given back, {left} left to \
             the sweep"
        )
    }
}

/// Resource and name of a claim.
type Claim = (&'static str, String);

/// The state after a revision.
#[derive(Default)]
struct State {
    /// What each Service has.
    services: BTreeMap<String, BTreeSet<Claim>>,
    /// For which Service each claim was made.
    claims: BTreeMap<Claim, String>,
    judged: Served,
}

/// Judges all rows; these Services are gone, and were asked for when nothing was wrong.
pub fn judge(rows: &[Row], quiet: &[String]) -> (Served, Vec<Violation>) {
    let (mut state, mut violations) = (State::default(), Vec::new());
    let mut complain =
        |story: String| violations.push(Violation::new(Promise::Guarded, format!("services: {story}")));
    for row in rows {
        for story in state.step(row) {
            complain(format!("{story} at revision {}: {row:?}", row.revision));
        }
    }
    let unused = |(claim, service): &(&Claim, &String)| {
        !state.services.get(*service).is_some_and(|has| has.contains(*claim))
    };
    for (claim, service) in state.claims.iter().filter(unused) {
        state.judged.left += 1;
        if quiet.contains(service) {
            complain(format!("{claim:?} of {service} was not given back"));
        }
    }
    (state.judged, violations)
}

impl State {
    /// Takes in a row. Says what is wrong with it.
    fn step(&mut self, row: &Row) -> Vec<String> {
        let Row { plural, namespace, name, object, .. } = row;
        if plural == "services" {
            return if namespace == NAMESPACE { self.service(name, object.as_ref()) } else { Vec::new() };
        }
        let resource = RESOURCES.into_iter().find(|resource| resource == plural).expect("a resource");
        let claim = (resource, name.clone());
        match object {
            Some(object) if object["spec"]["parentRef"]["namespace"] == NAMESPACE => {
                let service = object["spec"]["parentRef"]["name"].as_str().expect("a name").to_owned();
                let before = self.claims.insert(claim, service.clone());
                let is_passed_on = before.is_some_and(|before| before != service);
                is_passed_on.then(|| "a claim was passed on".to_owned()).into_iter().collect()
            }
            Some(_) => Vec::new(),
            None => {
                let Some(service) = self.claims.remove(&claim) else { return Vec::new() };
                self.judged.given_back += 1;
                let needs = self.services.get(&service).is_some_and(|has| has.contains(&claim));
                needs.then(|| format!("{service} has what is given back")).into_iter().collect()
            }
        }
    }

    fn service(&mut self, name: &str, object: Option<&Value>) -> Vec<String> {
        self.judged.writes += 1;
        let Some(object) = object else {
            self.services.remove(name);
            return Vec::new();
        };
        let has = claims_of(object);
        let mut stories: Vec<String> = has.iter().filter_map(out_of_range).collect();
        for (other, others) in self.services.iter().filter(|(other, _)| *other != name) {
            stories.extend(has.intersection(others).map(|claim| format!("{other} has {claim:?}, too")));
        }
        let unclaimed =
            has.iter().filter(|claim| self.claims.get(*claim).is_none_or(|service| service != name));
        stories.extend(unclaimed.map(|claim| format!("{claim:?} is not claimed for it")));
        let before = self.services.insert(name.to_owned(), has.clone()).unwrap_or_default();
        for (resource, _) in has.difference(&before) {
            match *resource {
                "nodeports" => self.judged.ports += 1,
                _ => self.judged.addresses += 1,
            }
        }
        stories
    }
}

/// What a Service has.
fn claims_of(service: &Value) -> BTreeSet<Claim> {
    let spec = &service["spec"];
    let addresses = spec["clusterIPs"].as_array().into_iter().flatten().chain([&spec["clusterIP"]]);
    let addresses = addresses.filter_map(Value::as_str).filter(|address| !matches!(*address, "" | "None"));
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    let ports =
        ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_u64).filter(|port| *port > 0);
    let addresses = addresses.map(|address| ("ipaddresses", address.to_owned()));
    addresses.chain(ports.map(|port| ("nodeports", port.to_string()))).collect()
}

fn out_of_range((resource, name): &Claim) -> Option<String> {
    let is_in = match *resource {
        "nodeports" => name.parse().is_ok_and(|port: u64| PORTS.contains(&port)),
        _ => name.parse().is_ok_and(|address: Ipv4Addr| ADDRESSES.contains(&address)),
    };
    (!is_in).then(|| format!("{name} is out of range"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(revision: u64, plural: &str, name: &str, object: Value) -> Row {
        let (object, uid) = (Some(object).filter(|object| !object.is_null()), String::new());
        let namespace = if plural == "services" { NAMESPACE } else { "" }.to_owned();
        Row { revision, plural: plural.to_owned(), namespace, name: name.to_owned(), uid, object }
    }

    fn claim(revision: u64, plural: &str, name: &str, service: &str) -> Row {
        let parent = json!({"namespace": NAMESPACE, "name": service});
        row(revision, plural, name, json!({"spec": {"parentRef": parent}}))
    }

    fn service(revision: u64, name: &str, address: &str, port: u64) -> Row {
        let spec = json!({"clusterIPs": [address], "ports": [{"nodePort": port}]});
        row(revision, "services", name, json!({"spec": spec}))
    }

    fn found(rows: &[Row]) -> Vec<String> {
        let violations = judge(rows, &["quiet-0".to_owned()]).1;
        violations.into_iter().map(|violation| violation.story).collect()
    }

    /// `a` comes, gives up its port, which `b` gets, and goes; `quiet-0` comes and goes.
    fn good() -> Vec<Row> {
        vec![
            claim(1, "ipaddresses", "10.0.0.5", "a"),
            claim(2, "nodeports", "30000", "a"),
            service(3, "a", "10.0.0.5", 30_000),
            service(4, "a", "10.0.0.5", 0),
            row(5, "nodeports", "30000", Value::Null),
            claim(6, "ipaddresses", "10.0.0.6", "b"),
            claim(7, "nodeports", "30000", "b"),
            service(8, "b", "10.0.0.6", 30_000),
            row(9, "services", "a", Value::Null),
            row(10, "ipaddresses", "10.0.0.5", Value::Null),
            claim(11, "ipaddresses", "10.0.0.7", "quiet-0"),
            service(12, "quiet-0", "10.0.0.7", 0),
            row(13, "services", "quiet-0", Value::Null),
            row(14, "ipaddresses", "10.0.0.7", Value::Null),
        ]
    }

    #[track_caller]
    fn finds(story: &str, plant: impl FnOnce(&mut Vec<Row>)) {
        let mut rows = good();
        assert_eq!(found(&rows), [""; 0]);
        plant(&mut rows);
        let found = found(&rows);
        assert!(found.iter().any(|found| found.contains(story)), "{story} in {found:?}");
    }

    #[test]
    fn what_two_services_have_is_found() {
        finds("a has (\"ipaddresses\"", |rows| rows[7] = service(8, "b", "10.0.0.5", 30_000));
        finds("a has (\"nodeports\"", |rows| drop(rows.remove(3)));
    }

    #[test]
    fn what_is_not_claimed_or_given_back_too_early_is_found() {
        finds("is not claimed", |rows| drop(rows.remove(1)));
        finds("is not claimed", |rows| rows[1] = claim(2, "nodeports", "30000", "b"));
        finds("has what is given back", |rows| rows.swap(3, 4));
        finds("passed on", |rows| drop(rows.remove(4)));
    }

    #[test]
    fn what_is_out_of_range_is_found() {
        for address in ["10.0.0.0", "10.0.0.1", "10.0.0.255", "10.0.1.5"] {
            finds("out of range", |rows| {
                rows[0] = claim(1, "ipaddresses", address, "a");
                rows[2] = service(3, "a", address, 30_000);
            });
        }
        finds("out of range", |rows| rows[7] = service(8, "b", "10.0.0.6", 29_999));
    }

    #[test]
    fn what_is_not_given_back_is_found() {
        finds("was not given back", |rows| drop(rows.pop()));
        let mut rows = good();
        rows.remove(9);
        assert_eq!(judge(&rows, &[]).0.left, 1, "a fault may be the reason");
    }
}
