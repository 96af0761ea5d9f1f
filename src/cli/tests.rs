//! What the command line comes to, and how it is refused.

use std::time::Duration;

use super::config::{LogFormat, ServeConfig};
use super::datastore::Datastore;
use super::*;

fn parse(arguments: &[&str]) -> Result<ServeConfig, Error> {
    let arguments = std::iter::once("rowplane").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(arguments).map_err(|error| Error::usage(&error))?;
    match cli.command() {
        Command::Serve(arguments) => arguments.into_config(),
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
        assert_eq!(config.listen_address().to_string(), "127.0.0.1:7");
        assert_eq!(config.datastore, Datastore::Sqlite("./rowplane-data/state.db".into()));
        assert_eq!(config.kubeconfig().to_str(), Some("./rowplane-data/admin.kubeconfig"));
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
    assert_eq!(config.log.format, LogFormat::Text);
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
}

#[test]
fn refusals_are_one_line_and_name_the_flag() {
    let cases: [(&[&str], &str); 8] = [
        (&["--no-such-flag"], "unexpected argument '--no-such-flag' found"),
        (&["run"], "'run'"),
        (&["--secure-port=70000"], "--secure-port"),
        (&["--bind-address=here"], "--bind-address"),
        (&["--event-ttl=5 apples"], "--event-ttl"),
        (&["--event-ttl=-1h"], "cannot be negative"),
        (&["--datastore=mysql://h"], "unknown scheme \"mysql\""),
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
