//! Users whose rights come and go while everything else fails. Nobody is let in by a right whose end was answered before he
//! asked, nobody is refused who had been given it, whichever server he asks; and of two requests one after the other, the
//! later never knows less.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, StatusCode};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::history::{Promise, Time, Violation};
use super::load::{PATIENCE, Shared};
use super::process::pause;
use crate::support::rest::{Answer, Broken, Client, revision};

const USERS: usize = 2;
/// Clients that ask as one user.
const PROBES: usize = 2;
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
/// What the right is for.
const ASKED: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// A change of a user's right: it has taken effect between these times.
#[derive(Clone, Copy, Debug)]
struct Turn {
    allowed: bool,
    called: Time,
    returned: Time,
}

/// What a user was answered who used the right.
#[derive(Clone, Copy, Debug)]
struct Probe {
    allowed: bool,
    called: Time,
    returned: Time,
}

/// All that happened to a user.
#[derive(Debug, Default)]
struct Life {
    turns: Vec<Turn>,
    probes: Vec<Probe>,
}

pub struct Rights {
    stop: Arc<AtomicBool>,
    users: Vec<User>,
}

/// Who changes a user's right, and who asks as that user.
struct User {
    turning: JoinHandle<Vec<Turn>>,
    probing: Vec<JoinHandle<Vec<Probe>>>,
}

/// Makes the role, and a binding of nobody for each user.
pub async fn prepare(client: &Client) {
    let verbs = json!(["list", "create", "patch", "delete"]);
    let rules = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]);
    let role = json!({"metadata": {"name": "rights"}, "rules": rules});
    client.post(&format!("{RBAC}/roles"), &role).await.expect("an answer").ok();
    for user in 0..USERS {
        client
            .post(&format!("{RBAC}/rolebindings"), &binding(user, false, None))
            .await
            .expect("an answer")
            .ok();
    }
}

fn name(user: usize) -> String {
    format!("rights-{user}")
}

fn binding(user: usize, allowed: bool, version: Option<u64>) -> Value {
    let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name(user)});
    let subjects = if allowed { vec![subject] } else { Vec::new() };
    let role = json!({"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": "rights"});
    let mut metadata = json!({"name": name(user)});
    if let Some(version) = version {
        metadata["resourceVersion"] = version.to_string().into();
    }
    json!({"metadata": metadata, "roleRef": role, "subjects": subjects})
}

impl Rights {
    pub fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let random = |n: usize| StdRng::seed_from_u64(seed.wrapping_add(9000 + n as u64));
        let start = |user: usize| {
            let probe =
                |n| tokio::spawn(probe(shared.clone(), user, random(user * 10 + n + 1), stop.clone()));
            let turning = tokio::spawn(turn(shared.clone(), user, random(user * 10), stop.clone()));
            User { turning, probing: (0..PROBES).map(probe).collect() }
        };
        Self { users: (0..USERS).map(start).collect(), stop }
    }

    /// Ends it all. Where a failover has `lost` answered writes, nothing is promised.
    pub async fn judge(self, lost: bool) -> (usize, Vec<Violation>) {
        self.stop.store(true, Ordering::Relaxed);
        let (mut turned, mut violations) = (0, Vec::new());
        for User { turning, probing } in self.users {
            let mut life = Life { turns: turning.await.expect("a client"), probes: Vec::new() };
            for probes in probing {
                life.probes.extend(probes.await.expect("a client"));
            }
            turned += life.turns.len();
            violations.extend(life.judge().filter(|_| !lost));
        }
        (turned, violations)
    }
}

/// Gives the right and takes it, one after the other, each until that is certain.
async fn turn(shared: Arc<Shared>, user: usize, mut random: StdRng, stop: Arc<AtomicBool>) -> Vec<Turn> {
    let (mut turns, mut version) = (Vec::new(), None);
    let path = format!("{RBAC}/rolebindings/{}", name(user));
    'turns: while !stop.load(Ordering::Relaxed) {
        let allowed = turns.len() % 2 == 0;
        let called = shared.now();
        loop {
            let server = shared.any(&mut random);
            // A request without an answer may take effect later, but not after another version was written.
            if version.is_some() {
                let body = binding(user, allowed, version);
                let put = tokio::time::timeout(PATIENCE, server.put(&path, &body)).await;
                if let Ok(Ok(Answer { status: StatusCode::OK, body })) = put {
                    version = Some(revision(&body));
                    break;
                }
            }
            let read = tokio::time::timeout(PATIENCE, server.get(&path)).await;
            if let Ok(Ok(Answer { status: StatusCode::OK, body })) = read {
                version = Some(revision(&body));
                if body["subjects"].as_array().is_some_and(|subjects| !subjects.is_empty()) == allowed {
                    break;
                }
            } else {
                pause().await;
            }
            if stop.load(Ordering::Relaxed) {
                break 'turns;
            }
        }
        turns.push(Turn { allowed, called, returned: shared.now() });
        pause().await;
    }
    turns
}

/// Uses the right again and again.
async fn probe(shared: Arc<Shared>, user: usize, mut random: StdRng, stop: Arc<AtomicBool>) -> Vec<Probe> {
    let mut probes = Vec::new();
    let user = name(user);
    while !stop.load(Ordering::Relaxed) {
        let server = shared.any(&mut random);
        let called = shared.now();
        let answer = tokio::time::timeout(PATIENCE, use_right(server, &user, &mut random)).await;
        let returned = shared.now();
        match answer.ok().and_then(Result::ok).and_then(|answer| is_allowed(&answer)) {
            Some(allowed) => probes.push(Probe { allowed, called, returned }),
            None => pause().await,
        }
        let breath = random.random_range(1..20);
        tokio::time::sleep(std::time::Duration::from_millis(breath)).await;
    }
    probes
}

/// Reads, or writes the one object that all who probe share: so some writes are committed, and some end in a 404 or a 409.
async fn use_right(server: &Client, user: &str, random: &mut StdRng) -> Result<Answer, Broken> {
    let one = format!("{ASKED}/rights");
    let labelled = json!({"metadata": {"labels": {"n": random.random::<u32>().to_string()}}});
    match random.random_range(0..8) {
        0..3 => server.call_as(user, Method::GET, &format!("{ASKED}?limit=1"), None).await,
        3..5 => server.call_as(user, Method::PATCH, &one, Some(&labelled)).await,
        5..7 => {
            let object = json!({"metadata": {"name": "rights"}});
            server.call_as(user, Method::POST, ASKED, Some(&object)).await
        }
        _ => server.call_as(user, Method::DELETE, &one, None).await,
    }
}

/// Whether the user may do what he has asked for; `None` if the answer does not tell.
fn is_allowed(answer: &Answer) -> Option<bool> {
    let told = answer.body["message"].as_str().unwrap_or_default();
    match answer.status {
        StatusCode::OK | StatusCode::CREATED | StatusCode::NOT_FOUND | StatusCode::CONFLICT => Some(true),
        StatusCode::FORBIDDEN if told.contains(": User \"rights-") => Some(false),
        _ => None,
    }
}

impl Life {
    fn judge(&self) -> impl Iterator<Item = Violation> {
        // At first nobody has the right.
        let turns: Vec<Turn> =
            [Turn { allowed: false, called: 0, returned: 0 }].into_iter().chain(self.turns.clone()).collect();
        let mut stories = Vec::new();
        // Of each turn, when it was seen to be in force: the earliest end and the latest begin of a request.
        let mut seen = vec![(Time::MAX, 0); turns.len()];
        for probe in &self.probes {
            let may_be_in_force = |at: &usize| {
                turns[*at].called <= probe.returned
                    && turns.get(at + 1).is_none_or(|next| next.returned >= probe.called)
            };
            let fitting: Vec<usize> = (0..turns.len())
                .filter(may_be_in_force)
                .filter(|at| turns[*at].allowed == probe.allowed)
                .collect();
            match *fitting {
                [] => stories.push(format!("{probe:?} among {turns:?}")),
                [at] => seen[at] = (seen[at].0.min(probe.returned), seen[at].1.max(probe.called)),
                _ => {}
            }
        }
        for (at, pair) in seen.windows(2).enumerate() {
            if pair[0].1 > pair[1].0 {
                stories.push(format!("{:?} was seen after {:?}", turns[at], turns[at + 1]));
            }
        }
        stories.into_iter().map(|story| Violation::new(Promise::Linearizable, format!("rights: {story}")))
    }
}

#[test]
fn rights_that_outlive_their_end_are_found() {
    let turns = vec![
        Turn { allowed: true, called: 10, returned: 20 },
        Turn { allowed: false, called: 50, returned: 60 },
    ];
    let found = |probes: &[(bool, Time, Time)]| {
        let probes = probes.iter().map(|(allowed, called, returned)| Probe {
            allowed: *allowed,
            called: *called,
            returned: *returned,
        });
        Life { turns: turns.clone(), probes: probes.collect() }.judge().count()
    };
    assert_eq!(found(&[(false, 1, 5), (true, 12, 15), (true, 30, 40), (false, 55, 57), (false, 70, 80)]), 0);
    assert_eq!(found(&[(false, 15, 25), (true, 45, 55), (true, 52, 90)]), 0, "what overlaps may be either");
    assert_eq!(found(&[(true, 61, 70)]), 1, "after its end");
    assert_eq!(found(&[(false, 21, 49)]), 1, "refused though it was given");
    assert_eq!(found(&[(true, 1, 9)]), 1, "before it was given");
    assert_eq!(found(&[(false, 51, 53), (true, 54, 58)]), 1, "known by one, and not by the next");
}
