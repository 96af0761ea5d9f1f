//! The result of parsing kube-apiserver's command lines.

use super::*;
use crate::auth::authorizer::Mode;
use crate::server::config::{Config, Registration};

fn run(arguments: &[&str]) -> Result<(Config, String), String> {
    run_beside(arguments, "http://127.0.0.1:2379 does not answer")
        .map(|run| (run.config.server, run.notes.join(", ")))
}

/// `etcd` is the answer of what `--etcd-servers` names.
fn run_beside(arguments: &[&str], etcd: &str) -> Result<Run, String> {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    let ask =
        |_: &EtcdServers| Place::from_json(etcd.as_bytes()).ok_or_else(|| Error::Refused(etcd.to_owned()));
    match parse(arguments, ask) {
        Ok(ParsedCommand::Run(run)) => Ok(*run),
        Ok(ParsedCommand::Print(text)) => panic!("{text}"),
        Err(error) => Err(error.one_line()),
    }
}

/// Flags that envtest passes, with existing files.
#[test]
fn envtest() {
    let dir = tempfile::tempdir().unwrap();
    for file in
        ["apiserver.crt", "apiserver.key", "sa-signer.crt", "sa-signer.key", "client-cert-auth-ca.crt"]
    {
        std::fs::write(dir.path().join(file), "").unwrap();
    }
    let with_dir = |flag: &str| flag.replace("DIR", &dir.path().to_string_lossy());
    let arguments = [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        "--cert-dir=DIR",
        "--client-ca-file=DIR/client-cert-auth-ca.crt",
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=6000",
        "--service-account-issuer=https://127.0.0.1:6000/",
        "--service-account-key-file=DIR/sa-signer.crt",
        "--service-account-signing-key-file=DIR/sa-signer.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]
    .map(with_dir);
    let stand_in = r#"{"datastore":"memory:","durability":"none"}"#;
    let run = run_beside(&arguments.each_ref().map(String::as_str), stand_in).unwrap();
    let (config, notes) = (run.config.server, run.notes.join(", "));
    assert_eq!((config.datastore.to_string().as_str(), run.in_memory), ("memory:", None));
    assert_eq!(config.authorization, vec![Mode::Rbac].into());
    assert_eq!(config.data_dir.as_deref(), Some(dir.path()));
    let https = config.https.unwrap();
    assert_eq!((https.address.to_string().as_str(), https.kubeconfig), ("127.0.0.1:6000", None));
    let serving = https.certificates.serving.unwrap();
    assert_eq!(serving, (dir.path().join("apiserver.crt"), dir.path().join("apiserver.key")));
    assert_eq!(https.certificates.client_ca_file, Some(dir.path().join("client-cert-auth-ca.crt")));
    for named in ["--allow-privileged (", "--etcd-servers ("] {
        assert!(notes.contains(named), "{named}: {notes}");
    }
    assert!(!notes.contains("--secure-port"), "{notes}");
}

/// Empty values that upstream takes, too.
#[test]
fn without_a_directory_or_a_mode_there_are_defaults() {
    let (config, _) = run(&["--cert-dir=", "--authorization-mode=", "--secure-port=1"]).unwrap();
    assert_eq!(config.authorization, vec![Mode::AlwaysAllow].into());
    let https = config.https.unwrap();
    assert_eq!((https.certificates.published, https.certificates.serving), (None, None));
    let directory = config.data_dir.unwrap();
    assert!(directory.starts_with(std::env::temp_dir()) && !directory.exists(), "{directory:?}");
}

/// Flags that kube-api-test passes: values as separate arguments, a flag twice.
#[test]
fn the_last_of_a_scalar_counts_and_underscores_are_dashes() {
    let arguments = ["--secure_port", "1", "--secure-port", "2", "--max-requests-inflight=7", "-v", "2"];
    let (config, _) = run(&arguments).unwrap();
    assert_eq!(config.https.unwrap().address.to_string(), "0.0.0.0:2");
    assert_eq!(config.limits.in_flight.reading, 7);
    assert_eq!(config.authorization, vec![Mode::AlwaysAllow].into());
    assert!(!config.admission.has("NodeRestriction"), "upstream's default");
    assert_eq!(config.datastore.to_string(), "memory:");
    let (config, _) = run(&["--datastore=sqlite:a.db", "--etcd-compaction-interval=0"]).unwrap();
    assert_eq!(config.datastore.to_string(), "sqlite:a.db");
    assert!(config.compaction.is_none());
    assert_eq!(config.audit.database, None);
}

/// 61 of `docs/spec/cluster.md`: which place is taken.
#[test]
fn cluster_61_the_place_of_the_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display();
    std::fs::write(dir.path().join("rowplane-etcd"), "mark").unwrap();
    let (seen, unseen, volatile) = (
        format!(r#"{{"datastore":"sqlite:{path}/state.db","durability":"full","mark":"mark"}}"#),
        format!(r#"{{"datastore":"sqlite:{path}/state.db","durability":"full","mark":"another"}}"#),
        r#"{"datastore":"memory:","durability":"none"}"#.to_owned(),
    );
    let (http, data_dir) = ("--etcd-servers=http://127.0.0.1:2379", "--data-dir=/var/lib/rowplane");
    let in_etcd = format!("sqlite:{path}/state.db");
    let cases: [(&[&str], &str, &str, Option<&str>); 9] = [
        (&[http], &seen, &in_etcd, None),
        (&[http, data_dir], &seen, &in_etcd, None),
        (&[http], &unseen, "memory:", Some("http://127.0.0.1:2379 is not mounted here")),
        (&[http, data_dir], &unseen, "sqlite:/var/lib/rowplane/state.db", None),
        (&[http, data_dir], &volatile, "memory:", None),
        (&[], "", "memory:", Some("no flag names another place")),
        (&[data_dir], "", "sqlite:/var/lib/rowplane/state.db", None),
        (&["--etcd-servers=postgres://u@h:1,i:2/d"], "", "postgres://u@h:1,i:2/d", None),
        (&[http, "--datastore=sqlite:a.db"], "", "sqlite:a.db", None),
    ];
    for (arguments, etcd, datastore, why) in cases {
        let run = run_beside(arguments, etcd).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        assert_eq!(run.config.server.datastore.to_string(), datastore, "{arguments:?}");
        let in_memory = run.in_memory.unwrap_or_default();
        assert!(in_memory.ends_with(why.unwrap_or_default()), "{arguments:?}: {in_memory}");
        assert_eq!(in_memory.is_empty(), why.is_none(), "{arguments:?}: {in_memory}");
    }
    let (_, notes) = run(&[http, "--datastore=sqlite:a.db", "--etcd-cafile=/nowhere"]).unwrap();
    for named in ["--etcd-servers (--datastore says", "--etcd-cafile (--datastore says"] {
        assert!(notes.contains(named), "{named}: {notes}");
    }
    assert!(run(&[http]).unwrap_err().contains("does not answer"));
    let bad = run(&[http, "--secure-port=0"]).unwrap_err();
    assert!(bad.starts_with("--secure-port 0"), "etcd is asked last: {bad}");
}

/// 66 of `docs/spec/cluster.md`, of flags.
#[test]
fn cluster_66_who_may_do_everything_is_known() {
    use crate::auth::authn::Anonymous;
    let anonymous = |flags: &[&str]| {
        let run = run_beside(flags, "").unwrap();
        (run.config.server.authentication.anonymous, run.config.warnings.len())
    };
    assert_eq!(anonymous(&[]), (Anonymous::Nowhere, 1));
    assert_eq!(
        anonymous(&["--authorization-mode=RBAC,AlwaysAllow", "--anonymous-auth=true"]),
        (Anonymous::Nowhere, 1)
    );
    assert_eq!(anonymous(&["--authorization-mode=RBAC"]), (Anonymous::Everywhere, 0));
    assert_eq!(anonymous(&["--authorization-mode=RBAC", "--anonymous-auth=false"]), (Anonymous::Nowhere, 0));
}

/// 53 and 54 of `docs/spec/cluster.md`, of flags.
#[test]
fn cluster_53_54_who_keeps_endpoints_and_of_which_family() {
    use crate::controllers::servers::kubernetes_service::Endpoints;
    let kept = |flags: &[&str]| run(flags).map(|(config, _)| config.endpoints);
    assert_eq!(kept(&[]), Ok(Endpoints::Servers));
    assert_eq!(
        kept(&["--endpoint-reconciler-type=master-count", "--apiserver-count=3"]),
        Ok(Endpoints::Servers)
    );
    assert!(kept(&["--endpoint-reconciler-type=nope"]).unwrap_err().contains("lease, master-count, none"));
    let other = ["--advertise-address=::1", "--service-cluster-ip-range=10.0.0.0/24"];
    let why = "service IP family \"10.0.0.0/24\" must match public address family \"::1\"";
    assert_eq!(kept(&other), Err(why.to_owned()));
    assert_eq!(kept(&[&other[..], &["--endpoint-reconciler-type=none"]].concat()), Ok(Endpoints::Others));
    assert_eq!(
        kept(&["--advertise-address=::1", "--service-cluster-ip-range=fd00::/112"]),
        Ok(Endpoints::Servers)
    );
}

#[test]
fn services_are_reached_by_upstreams_flag_and_by_addresses() {
    use crate::api::service_routes::{FixedAddresses, Routing, parse_fixed};
    let (config, _) =
        run(&["--enable-aggregator-routing", "--service-address=n/a:https=h:1,n/b=[::1]:2"]).unwrap();
    assert_eq!(config.service_routes.routing, Routing::Endpoints);
    let fixed = ["n/a:https=h:1", "n/b=[::1]:2"].map(|text| parse_fixed(text).unwrap());
    assert_eq!(config.service_routes.fixed, FixedAddresses::new(fixed));
    assert_eq!(run(&[]).unwrap().0.service_routes, Default::default());
    assert!(run(&["--service-address=n=h:1"]).unwrap_err().contains("NAMESPACE/NAME[:PORT]=HOST:PORT"));
}

#[test]
fn kubelets_are_reached_by_upstreams_flags() {
    use crate::api::kubelets::Config;
    let arguments = [
        "--kubelet-client-certificate=c.crt",
        "--kubelet-client-key=c.key",
        "--kubelet-certificate-authority=ca.crt",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        "--kubelet-port=7",
        "--max-connection-bytes-per-sec=9",
        "--kubelet-timeout=5s",
    ];
    let (config, _) = run(&arguments).unwrap();
    let want = Config {
        client_certificate: Some(("c.crt".into(), "c.key".into())),
        authorities: Some("ca.crt".into()),
        address_types: vec!["InternalIP".to_owned(), "Hostname".to_owned()],
        port: 7,
        most_bytes: std::num::NonZeroU64::new(9),
    };
    assert_eq!(config.kubelets, want);
    assert_eq!(run(&[]).unwrap().0.kubelets, Config::default());
    assert!(run(&["--kubelet-client-key=c.key"]).is_err());
}

#[test]
fn an_empty_value_is_as_good_as_none_and_an_empty_argument_is_none() {
    let arguments = [
        "",
        "--storage-media-type=",
        "--bind-address=",
        "--advertise-address",
        "",
        "--client-ca-file=",
        "--storage-backend=",
        "--logging-format=",
        "--tls-min-version=",
        "--audit-log-mode=",
        "--authentication-token-webhook-version=",
    ];
    let (config, _) = run(&arguments).unwrap();
    let usual = run(&[]).unwrap().0;
    assert_eq!(config.storage_media_type, usual.storage_media_type);
    let (https, usual) = (config.https.unwrap(), usual.https.unwrap());
    assert_eq!((https.address, https.certificates.client_ca_file), (usual.address, None));
    assert_eq!(config.advertise_address, None);
    for number in ["--event-ttl=", "--secure-port=", "--max-requests-inflight=", "--goaway-chance=", "--v="] {
        assert!(run(&[number]).is_err(), "{number}");
    }
}

#[test]
fn what_kube_controller_manager_does_is_left_to_it() {
    use crate::server::config::Controllers;
    let switched = |arguments: &[&str]| {
        let config = run(arguments).unwrap().0;
        (config.controllers, config.garbage_collection, config.namespace_contents)
    };
    assert_eq!(switched(&[]), (Controllers::OfServer, true, false));
    assert_eq!(switched(&["--cluster-controllers=true"]), (Controllers::Run, true, true));
    let alone = ["--cluster-controllers", "--namespace-contents=false", "--enable-garbage-collector=false"];
    assert_eq!(switched(&alone), (Controllers::Run, false, false));
    assert_eq!(switched(&["--enable-garbage-collector"]), (Controllers::OfServer, true, false));
}

#[test]
fn only_the_version_that_is_served_can_be_emulated() {
    for flag in
        ["--emulated-version=1.37", "--emulated-version=kube=v1.37", "--min-compatibility-version=1.36"]
    {
        run(&[flag]).expect(flag);
    }
    let refused = |flag: &str| run(&[flag]).unwrap_err();
    assert_eq!(
        refused("--emulated-version=1.36"),
        "--emulated-version=1.36 is not available: this rowplane serves Kubernetes 1.37 alone; for another minor version run its \
         kube-apiserver"
    );
    assert!(refused("--min-compatibility-version=kube=1.35").contains("serves Kubernetes 1.37 alone"));
    assert_eq!(refused("--emulated-version=wardle=1.2"), "component not registered: wardle");
}

/// 17 of `docs/spec/admission.md`, among others.
#[test]
fn refusals() {
    let cases: [(&[&str], &str); 11] = [
        (&["--insecure-port=0"], "unknown flag: --insecure-port"),
        (&["x"], "\"kube-apiserver\" does not take any arguments, got [\"x\"]"),
        (
            &["--egress-selector-config-file=x"],
            "unable to read egress selector configuration from \"x\" [open x: no such file or directory]",
        ),
        (
            &["--tracing-config-file=x"],
            "unable to read tracing configuration from \"x\": open x: no such file or directory",
        ),
        (
            &["--authorization-mode=Webhook"],
            "authorization-mode Webhook's authorization config file not passed",
        ),
        (&["--authorization-mode=RABC"], "authorization-mode \"RABC\" is not a valid mode"),
        (&["--enable-admission-plugins=Nope"], "enable-admission-plugins plugin \"Nope\" is unknown"),
        (&["--admission-control=Y"], "admission-control plugin \"Y\" is unknown"),
        (&["--disable-admission-plugins=X"], "disable-admission-plugins plugin \"X\" is unknown"),
        (&["--secure-port=0", "--storage-backend=x"], "[--secure-port 0 must be"),
        (&["--service-account-key-file=/nowhere"], "--service-account-key-file: /nowhere: No such file"),
    ];
    for (arguments, text) in cases {
        let error = run(arguments).unwrap_err();
        assert!(error.contains(text), "{arguments:?}: {error}");
    }
}

/// `testdata/flags.txt` has the type, name and heading of each flag that `kube-apiserver --help` of v1.37.2 prints.
#[test]
fn cluster_58_flags_of_kube_apiserver_have_its_headings_and_forms() {
    let flags = Flags::all();
    for line in include_str!("../../../testdata/flags.txt").lines() {
        let [kind, name, heading] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected = match kind {
            "bool" => Form::Bool,
            "Level" | "duration" | "float" | "float32" | "int" | "portRange" => Form::Number,
            "ip" | "quantity" | "string" => Form::Scalar,
            "namedCertKey" | "stringToString" => Form::Each,
            _ => Form::List,
        };
        let found = flags.0.iter().find(|(_, known, _)| known == name);
        let found = found.map(|(heading, _, form)| (heading.as_str(), *form));
        assert_eq!(found, Some((heading, expected)), "{name}");
    }
}

fn nobody(_: &EtcdServers) -> Result<Place, Error> {
    panic!("no etcd is named")
}

#[test]
fn cluster_59_help_shows_what_is_accepted() {
    let Ok(ParsedCommand::Print(help)) = parse(["--help".to_owned()], nobody) else { panic!("no help") };
    for flag in ["--etcd-servers", "--cert-dir", "--datastore", "--v", "--help"] {
        assert!(help.lines().any(|line| line.split_whitespace().next() == Some(flag)), "{flag}");
    }
    // envtest would pass this flag if the help contained it.
    assert!(!help.contains("--insecure-port"));
    let Ok(ParsedCommand::Print(version)) = parse(["--version".to_owned()], nobody) else {
        panic!("no version")
    };
    assert_eq!(version, "Kubernetes v1.37.0\n");
}

#[test]
fn cluster_63_features_of_upstreams_that_cannot_be_switched_here_are_named() {
    let (config, notes) =
        run(&["--feature-gates=WatchList=false,StorageVersionAPI=false,AllAlpha=true"]).unwrap();
    let registration = config.identity.map(|identity| identity.registration);
    assert_eq!(registration, Some(Registration::Off), "StorageVersionAPI can be switched");
    assert!(notes.contains("--feature-gates (WatchList, AllAlpha cannot be switched here)"), "{notes}");
    run(&["--feature-gates=EvictionRequestAPI=false,ClientsAllowCBOR=true"]).expect("features of v1.37.2");
    for (gate, why) in [
        ("NoSuch=true", "unrecognized feature gate: NoSuch"),
        ("SidecarContainers=true", "unrecognized feature gate: SidecarContainers"),
        ("WatchList=2", "WatchList"),
    ] {
        let refused = run(&[&format!("--feature-gates={gate}")]).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}
