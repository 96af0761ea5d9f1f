//! What the audit of a get to a file costs: two events at level Metadata, from the policy to the page cache.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{HeaderValue, Uri};
use jiff::Timestamp;
use rowplane::audit::config::{
    Batching, Config, Delivery, LogConfig, LogFormat, LogTarget, Mode, Rotation, Truncation,
};
use rowplane::audit::{Audit, Head, Sources, Stage, address};
use rowplane::auth::authorizer::Attributes;
use rowplane::runtime::Runtime;
use rowplane::user::User;

use crate::timing::{Measured, measure};

const PATH: &str = "/api/v1/namespaces/default/configmaps/settings";

pub async fn auditing(duration: Duration) {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = directory.path().join("policy.yaml");
    let text = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    std::fs::write(&policy, text).expect("written");
    let rotation = Rotation { largest: 100, days: 0, backups: 1, compress: false };
    let batches = Batching { buffer: 1, largest: 1, wait: Duration::ZERO, throttle: None, overlap: false };
    let config = Config {
        policy_file: Some(policy),
        log: Some(LogConfig {
            target: LogTarget::File { path: directory.path().join("audit.log"), rotation },
            format: LogFormat::Json,
            delivery: Delivery { mode: Mode::Blocking, batches, truncation: None::<Truncation> },
        }),
        ..Config::default()
    };
    let audit = Audit::start(&config, &Runtime::default()).expect("a log").expect("a policy");
    let user = Arc::new(User {
        name: "kubernetes-admin".to_owned(),
        groups: ["system:masters", "system:authenticated"].map(str::to_owned).into(),
        ..User::default()
    });
    let attributes = Attributes {
        resource: "configmaps",
        version: "v1",
        namespace: "default",
        name: "settings",
        ..Attributes::of_path(&user, "get", PATH)
    };
    let shared = |text: &str| HeaderValue::try_from(text.to_owned()).expect("a header");
    let id = shared("6f3a1f2e-56b0-4f8a-9d53-0d3bb2b1c9d7");
    let agent = shared("kubectl/v1.37.0 (linux/amd64) kubernetes/abcdef0");
    let uri: Uri = PATH.to_owned().try_into().expect("a URI");
    let peer = address([10, 0, 0, 7].into());
    let get = || {
        let record = audit.record(&attributes, |level| Head {
            level,
            audit_id: Some(id.clone()),
            uri: uri.clone(),
            long_query: None,
            verb: "get".into(),
            user: Some(user.clone()),
            sources: Sources::of("", "", Some(&peer)),
            sent_user_agent: Some(agent.clone()),
            received: Timestamp::now(),
            text: OnceLock::new(),
        });
        let record = record.expect("recorded");
        drop(record.stage(Stage::RequestReceived));
        record.annotate("authorization.k8s.io/decision", "allow");
        record.annotate("authorization.k8s.io/reason", "");
        record.answered_code(200);
        drop(record.stage(Stage::ResponseComplete));
    };
    let lines: [(&str, Measured); 1] = [("both events of a get, to a file", measure(duration, get))];
    println!("audit at level Metadata");
    Measured::print(&lines);
    audit.close().await;
}
