//! The result of parsing command lines, and their errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::config::LogFormat;
use super::*;
use crate::server::config::Config;
use crate::server::datastore::Datastore;
use crate::server::environment::{Application, Environment};

fn parse(arguments: &[&str]) -> Result<Config, Error> {
    Ok(parse_all(arguments)?.server)
}

fn parse_all(arguments: &[&str]) -> Result<config::ServeConfig, Error> {
    let arguments = std::iter::once("rowplane").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(arguments).map_err(|error| Error::usage(&error))?;
    match cli.command() {
        Command::Serve(arguments) => arguments.into_config(Defaults::Own),
        other => panic!("{other:?} does not serve"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    <Cli as clap::CommandFactory>::command().debug_assert();
}

#[test]
fn serve_is_the_default_and_takes_the_same_flags() {
    for arguments in [&["--secure-port=7"][..], &["serve", "--secure-port", "7"]] {
        let config = parse(arguments).unwrap();
        let https = config.https.unwrap();
        assert_eq!(https.address.to_string(), "127.0.0.1:7");
        assert_eq!(config.datastore, Datastore::Sqlite("./rowplane-data/state.db".into()));
        assert_eq!(https.kubeconfig.unwrap().to_str(), Some("./rowplane-data/admin.kubeconfig"));
    }
}

#[test]
fn defaults() {
    let config = parse(&[]).unwrap();
    let compaction = config.compaction.unwrap();
    assert_eq!(
        (compaction.interval, compaction.history),
        (Duration::from_secs(300), Duration::from_secs(300))
    );
    assert_eq!(config.limits.max_request_body_bytes, 3_145_728);
    assert_eq!(config.limits.min_request_timeout, Duration::from_secs(1800));
    assert_eq!(config.limits.event_ttl, Duration::from_secs(3600));
    assert_eq!(parse_all(&[]).unwrap().log.format, LogFormat::Text);
}

#[test]
fn databases_say_who_did_what_unless_a_policy_says_otherwise() {
    let kept = |arguments: &[&str]| parse(arguments).unwrap().audit.database;
    let database = kept(&[]).unwrap();
    assert_eq!((database.retention, database.most), (Duration::from_secs(72 * 3600), 200_000));
    assert_eq!(kept(&["--datastore=memory:"]), None);
    assert_eq!(kept(&["--audit-policy-file=policy.yaml"]), None);
    assert_eq!(kept(&["--audit-database-retention=0"]), None);
    let arguments = ["--datastore=memory:", "--audit-database-retention=1h", "--audit-database-max-events=5"];
    let database = kept(&arguments).unwrap();
    assert_eq!((database.retention, database.most), (Duration::from_secs(3600), 5));
}

#[test]
fn durations_are_go_s_and_zero_turns_compaction_off() {
    let config = parse(&["--event-ttl=1h30m", "--compaction-interval=0", "--request-timeout=1.5s"]).unwrap();
    assert_eq!(config.limits.event_ttl, Duration::from_secs(5400));
    assert_eq!(config.limits.request_timeout, Duration::from_millis(1500));
    assert!(config.compaction.is_none());
}

#[test]
fn limits_are_flags() {
    let config = parse(&["--max-request-body-bytes=2000", "--min-request-timeout=60"]).unwrap();
    assert_eq!(config.limits.max_request_body_bytes, 2000);
    assert_eq!(config.limits.min_request_timeout, Duration::from_secs(60));
    assert_eq!(parse(&["--max-object-bytes=9"]).unwrap().limits.max_object_bytes, 9);
    assert_eq!(parse(&[]).unwrap().limits.max_object_bytes, 3 << 20);
}

/// kube-apiserver leaves it to installers to restrict nodes.
#[test]
fn nodes_are_restricted_unless_somebody_says_otherwise() {
    let restricts = |arguments: &[&str]| parse(arguments).unwrap().admission.has("NodeRestriction");
    assert!(restricts(&[]) && restricts(&["serve", "--disable-admission-plugins=Priority"]));
    assert!(restricts(&["--enable-admission-plugins=AlwaysPullImages,NodeRestriction"]));
    assert!(!restricts(&["--disable-admission-plugins=NodeRestriction"]));
}

#[test]
fn refusals_are_one_line_and_name_the_flag() {
    let cases: [(&[&str], &str); 10] = [
        (&["--no-such-flag"], "unexpected argument '--no-such-flag' found"),
        (&["run"], "'run'"),
        (&["--secure-port=70000"], "--secure-port"),
        (&["--bind-address=here"], "--bind-address"),
        (&["--event-ttl=5 apples"], "--event-ttl"),
        (&["--event-ttl=-1h"], "cannot be negative"),
        (&["--datastore=mysql://h"], "MySQL and MariaDB are not supported"),
        (&["--datastore=other://h"], "unknown scheme \"other\""),
        (&["--data-dri=x"], "'--data-dri' found; did you mean '--data-dir'?"),
        (&["--tls-cert-file=x"], "--tls-private-key-file"),
    ];
    for (arguments, part) in cases {
        let error = parse(arguments).unwrap_err();
        let text = error.one_line();
        assert!(text.contains(part) && !text.contains('\n'), "{arguments:?}: {text}");
        assert!(!text.starts_with("error"), "{text}");
        assert_eq!(error.exit_code(), 2);
    }
}

/// A server whose application sets the flag when it is stopped.
async fn serve_until_failure(
    fail: impl FnOnce(&crate::tasks::Tasks, std::path::PathBuf) + Send + 'static,
) -> (Error, bool) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = format!("--data-dir={}", directory.path().display());
    let config = parse(&[&data_dir, "--secure-port=0"]).unwrap();
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = stopped.clone();
    let build = async move |environment: Environment| {
        let kubeconfig = environment.config.https.and_then(|https| https.kubeconfig);
        fail(&environment.runtime.tasks, kubeconfig.unwrap());
        let stop = Box::pin(async move { stop.store(true, Ordering::SeqCst) });
        Ok(Application { responder: Arc::new(axum::Router::new()), parent: None, stop })
    };
    let build = Box::new(move |environment| build(environment).boxed());
    let banner = Banner::Print { kubeconfig: None };
    let served = serve::serve_with(config, banner, config::Lifetime::UntilSignal, build);
    (served.await.unwrap_err(), stopped.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_task_that_dies_ends_the_server_which_drains_and_says_why() {
    let (error, stopped) = serve_until_failure(|tasks, kubeconfig| {
        tasks.spawn("feed", async move {
            while !kubeconfig.exists() {
                tokio::task::yield_now().await;
            }
            panic!("a\nbug");
        });
    })
    .await;
    assert_eq!(error.one_line(), "the server cannot go on: its task \"feed\" panicked: a bug");
    assert_eq!((error.exit_code(), stopped), (1, true));
}

#[tokio::test]
async fn a_server_that_fails_while_it_starts_does_not_wait() {
    let (error, _) = serve_until_failure(|tasks, _| {
        tasks.fail(crate::tasks::Failure::Store("the log could not be synced".into()));
    })
    .await;
    assert_eq!(error.one_line(), "the server cannot go on: the log could not be synced");
}
