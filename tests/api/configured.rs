//! A policy in force at revision R judges every write that is committed after R, on every server.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, rv};

on_every_store! {
    a_policy_judges_what_is_committed_after_it,
}

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const WRITERS: usize = 8;
const TURNS: usize = 12;
/// Objects of each turn at least.
const OBJECTS: usize = 10;

/// A policy that wants objects of this parity.
fn policy(parity: usize) -> Value {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
    let validations = json!([{"expression": format!("object.data.parity == '{parity}'")}]);
    json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations}})
}

/// Creates objects of either parity until the end; says which revision each was created at.
async fn write(
    server: &TestServer,
    writer: usize,
    made: &AtomicUsize,
    end: &AtomicBool,
) -> Vec<(u64, usize)> {
    let mut revisions = Vec::new();
    for n in 0.. {
        if end.load(Ordering::Relaxed) {
            break;
        }
        let object =
            json!({"metadata": {"name": format!("w{writer}-{n}")}, "data": {"parity": (n % 2).to_string()}});
        let answer = server.post(CONFIGMAPS, &object).await;
        if answer.status == 201 {
            revisions.push((rv(&answer.json()), n % 2));
            made.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(answer.json()["code"], 422, "{answer:?}");
        }
    }
    revisions
}

async fn a_policy_judges_what_is_committed_after_it(setup: Setup) {
    let mut servers = vec![setup.start().await];
    if matches!(setup.database, Database::Postgres(_)) {
        servers.push(setup.start().await);
    }
    let (made, end) = (AtomicUsize::new(0), AtomicBool::new(false));
    let first = rv(&servers[0].post(POLICIES, &policy(0)).await.expect(201));
    let binding =
        json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let bound = rv(&servers[0].post(BINDINGS, &binding).await.expect(201));
    assert!(first < bound);
    let turns = async {
        let mut turns = vec![(bound, 0)];
        for turn in 1..TURNS {
            let before = made.load(Ordering::Relaxed);
            while made.load(Ordering::Relaxed) < before + OBJECTS {
                tokio::task::yield_now().await;
            }
            let server = &servers[turn % servers.len()];
            let written = server.patch(format!("{POLICIES}/p"), &policy(turn % 2)).await.ok();
            turns.push((rv(&written), turn % 2));
        }
        end.store(true, Ordering::Relaxed);
        turns
    };
    let writers = (0..WRITERS).map(|writer| write(&servers[writer % servers.len()], writer, &made, &end));
    let (turns, written) = join(turns, join_all(writers)).await;
    for (revision, parity) in written.into_iter().flatten() {
        let (since, wanted) = turns.iter().rfind(|(since, _)| *since < revision).expect("a policy");
        assert_eq!(parity, *wanted, "created at {revision}, under the policy of {since}");
    }
}
