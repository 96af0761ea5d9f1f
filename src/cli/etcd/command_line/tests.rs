//! Flags as kubeadm, test environments and etcd's users write them.

use super::*;

fn parse_all(arguments: &[&str]) -> Result<Config, String> {
    match parse(arguments.iter().map(|argument| (*argument).to_owned()), |_| None) {
        Ok(Asked::Serve(config)) => Ok(*config),
        Ok(Asked::Print(text)) => panic!("{text}"),
        Err(error) => Err(error.one_line()),
    }
}

fn shown(urls: &[Uri]) -> Vec<String> {
    urls.iter().map(ToString::to_string).collect()
}

#[test]
fn flags_count_however_they_are_written() {
    for arguments in [
        &["--data-dir=d", "--listen-client-urls=http://127.0.0.1:7", "--unsafe-no-fsync=true"][..],
        &[
            "-data-dir",
            "d",
            "--listen-client-urls",
            "http://127.0.0.1:7",
            "--wal-dir",
            "w",
            "-unsafe-no-fsync",
        ],
        &[
            "--data-dir=c",
            "--listen-client-urls=x",
            "--data-dir=d",
            "--listen-client-urls=http://127.0.0.1:7",
            "--unsafe-no-fsync",
        ],
    ] {
        let config = parse_all(arguments).unwrap();
        assert_eq!(
            (shown(&config.clients), config.metrics),
            (vec!["http://127.0.0.1:7/".to_owned()], vec![])
        );
        assert_eq!((config.data_dir, config.durability), ("d".into(), Durability::None));
    }
    let config = parse_all(&["--name=n"]).unwrap();
    assert_eq!(config.data_dir, PathBuf::from("n.etcd"), "as etcd's default");
    assert_eq!((shown(&config.clients), config.durability), (vec![format!("{LISTEN}/")], Durability::Full));
}

/// kubeadm v1.37.2's, with the two addresses of a node whose own address is the loopback one.
#[test]
fn kubeadm_s_flags() {
    let config = parse_all(&[
        "--listen-client-urls=https://127.0.0.1:2379,https://127.0.0.1:2379",
        "--listen-metrics-urls=http://[::1]:2381",
        "--cert-file=/pki/server.crt",
        "--key-file=/pki/server.key",
        "--trusted-ca-file=/pki/ca.crt",
        "--client-cert-auth=true",
        "--data-dir=/var/lib/etcd",
    ]);
    let config = config.unwrap();
    assert_eq!(shown(&config.clients), ["https://127.0.0.1:2379/"], "each address once");
    assert_eq!(shown(&config.metrics), ["http://[::1]:2381/"]);
    let tls = config.tls.unwrap();
    assert_eq!(tls.authorities, Some("/pki/ca.crt".into()));
    assert_eq!((tls.certificate, tls.key), ("/pki/server.crt".into(), "/pki/server.key".into()));
}

#[test]
fn help_shows_what_test_environments_look_for() {
    let Ok(Asked::Print(help)) = parse(["--help".to_owned()], |_| None) else { panic!("help") };
    // envtest searches the help for this flag.
    assert!(help.lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")));
    assert!(help.contains("docs/etcd.md"), "{help}");
}

#[test]
fn refusals() {
    for (argument, why) in [
        ("--listen-client-urls=unix://x", "the scheme of \"unix://x\" must be http or https"),
        ("--listen-metrics-urls=unixs://h:1", "--listen-metrics-urls: the scheme of"),
        ("--listen-client-urls=http://h", "\"http://h\" has no port"),
        ("--listen-client-urls=http://[h", "is no URL"),
        ("--listen-client-urls=https://h:1", "https://h:1/ needs --cert-file and --key-file"),
        ("--client-cert-auth", "--client-cert-auth needs --trusted-ca-file"),
        ("--unsafe-no-fsync=maybe", "--unsafe-no-fsync: \"maybe\" is no boolean"),
        ("--data-dir", "flag needs an argument: --data-dir"),
    ] {
        let error = parse_all(&[argument]).unwrap_err();
        assert!(error.contains(why), "{argument}: {error}");
    }
}
