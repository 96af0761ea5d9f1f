//! What admission adds to a write: with nothing configured, with what does not match, with one policy, and with a quota.
//!
//!     cargo bench --bench admission [-- --rounds N]
//!
//! Each line has a server in memory of its own, which is called in process by one client: no socket, no TLS, no disk. All
//! lines take turns, 100 writes each, and a line's figure is the median over the rounds of what its median write takes
//! more than that of the line that it is compared with. So what slows the machine for a while slows both.

use std::time::Instant;

use clap::Parser;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use rowplane::Server;
use rowplane::api::admission::Settings;
use rowplane::server::config::Config;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const WRITES: usize = 100;
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
/// What webhooks and policies are called by.
const DYNAMIC: [&str; 4] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

#[derive(Parser)]
struct Arguments {
    /// How often each line has its turn.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a server has been told before it is measured.
#[derive(Clone, Copy, PartialEq)]
enum Setup {
    /// The four plugins that call webhooks and policies are off.
    Off,
    Nothing,
    OtherWebhooks(usize),
    OtherPolicies(usize),
    OnePolicy,
    Quota,
}

const SETUPS: [(&str, Setup); 7] = [
    ("the plugins of webhooks and policies are off", Setup::Off),
    ("nothing is configured", Setup::Nothing),
    ("100 webhooks that do not match", Setup::OtherWebhooks(100)),
    ("1,000 policies that do not match", Setup::OtherPolicies(1000)),
    ("one trivial policy that matches", Setup::OnePolicy),
    ("a quota of ConfigMaps in the namespace", Setup::Quota),
    ("the plugins are off, a second server", Setup::Off),
];

struct Line {
    name: &'static str,
    server: Server,
    writes: [Kind; 3],
    /// The median write of each round, in microseconds, by kind.
    medians: [Vec<f64>; 3],
}

/// A kind of write.
struct Kind {
    name: &'static str,
    /// The write with this number: its path and its body.
    write: fn(usize) -> (Method, String, Value),
    done: usize,
}

fn main() {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut lines = Vec::new();
        for (name, setup) in SETUPS {
            let server = start(setup).await;
            lines.push(Line { name, server, writes: kinds(), medians: Default::default() });
        }
        for round in 0..arguments.rounds {
            for kind in 0..3 {
                // Each round begins with another line.
                for turn in 0..lines.len() {
                    let line = (round + turn) % lines.len();
                    lines[line].take_turn(kind).await;
                }
            }
        }
        print(&lines);
        for line in lines {
            line.server.stop().await;
        }
    });
}

fn kinds() -> [Kind; 3] {
    let kind = |name, write| Kind { name, write, done: 0 };
    [
        kind("create of a ConfigMap of 4 KB", |number| {
            let object =
                json!({"metadata": {"name": format!("map-{number}")}, "data": {"text": "x".repeat(3_800)}});
            (Method::POST, "/api/v1/namespaces/default/configmaps".to_owned(), object)
        }),
        kind("merge patch of a Lease", |number| {
            let object = json!({"spec": {"holderIdentity": format!("holder-{number}")}});
            let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/lease";
            (Method::PATCH, path.to_owned(), object)
        }),
        kind("create of an Event", |number| {
            let involved = json!({"kind": "Pod", "namespace": "default", "name": "web"});
            let object = json!({"metadata": {"name": format!("web.{number}")}, "involvedObject": involved, "reason": "Pulled"});
            (Method::POST, "/api/v1/namespaces/default/events".to_owned(), object)
        }),
    ]
}

impl Line {
    async fn take_turn(&mut self, index: usize) {
        let kind = &mut self.writes[index];
        let mut samples = Vec::with_capacity(WRITES);
        for _ in 0..WRITES {
            let (method, path, object) = (kind.write)(kind.done);
            kind.done += 1;
            let request = request(method, &path, &object);
            let began = Instant::now();
            call(&self.server, request).await;
            samples.push(began.elapsed().as_secs_f64() * 1e6);
        }
        self.medians[index].push(median(samples));
    }
}

async fn start(setup: Setup) -> Server {
    let mut config = Config::default();
    if setup == Setup::Off {
        config.admission = Settings::new(&[], &DYNAMIC).expect("plugins");
    }
    let server =
        Server::builder().config(config).memory().without_controllers().start().await.expect("a server");
    let others = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}]);
    let config_maps =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]);
    match setup {
        Setup::Off | Setup::Nothing => {}
        Setup::OtherWebhooks(count) => {
            for number in 0..count {
                let webhook = json!({"name": "check.example.com", "rules": others, "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"}});
                let object =
                    json!({"metadata": {"name": format!("webhook-{number}")}, "webhooks": [webhook]});
                call(&server, request(Method::POST, WEBHOOKS, &object)).await;
            }
        }
        Setup::OtherPolicies(count) => {
            for number in 0..count {
                policy(&server, number, &others).await;
            }
        }
        Setup::OnePolicy => policy(&server, 0, &config_maps).await,
        Setup::Quota => {
            let object =
                json!({"metadata": {"name": "quota"}, "spec": {"hard": {"count/configmaps": "1000000"}}});
            call(&server, request(Method::POST, "/api/v1/namespaces/default/resourcequotas", &object)).await;
        }
    }
    let lease = json!({"metadata": {"name": "lease"}, "spec": {}});
    call(&server, request(Method::POST, "/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease))
        .await;
    server
}

/// A policy with its binding.
async fn policy(server: &Server, number: usize, rules: &Value) {
    let name = format!("policy-{number}");
    let validation = json!([{"expression": "size(object.data) < 100"}]);
    let spec = json!({"matchConstraints": {"resourceRules": rules}, "validations": validation});
    call(server, request(Method::POST, POLICIES, &json!({"metadata": {"name": name}, "spec": spec}))).await;
    let spec = json!({"policyName": name, "validationActions": ["Deny"]});
    call(server, request(Method::POST, BINDINGS, &json!({"metadata": {"name": name}, "spec": spec}))).await;
}

fn request(method: Method, path: &str, object: &Value) -> Request<Full<bytes::Bytes>> {
    let media_type =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, media_type)
        .body(Full::from(object.to_string()))
        .expect("a request")
}

async fn call(server: &Server, request: Request<Full<bytes::Bytes>>) {
    let answer = server.service().oneshot(request).await.expect("an answer");
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
    assert!(matches!(status, StatusCode::OK | StatusCode::CREATED), "{status}: {body:?}");
}

fn print(lines: &[Line]) {
    for kind in 0..3 {
        println!("| {} | p50 us | more than with the plugins off, us |", lines[0].writes[kind].name);
        println!("| --- | ---: | ---: |");
        for line in lines {
            let more = line.medians[kind].iter().zip(&lines[0].medians[kind]).map(|(of, base)| of - base);
            let (more, p50) = (median(more.collect()), median(line.medians[kind].clone()));
            println!("| {} | {p50:.1} | {more:.2} |", line.name);
        }
        println!();
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}
