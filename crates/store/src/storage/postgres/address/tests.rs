//! How URLs, environment and files are resolved.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

/// Resolves with this home directory and these environment variables.
fn resolve(url: &str, home: &Path, variables: &[(&str, &str)]) -> Result<Route, String> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let environment = Environment { variable: &variable, home: Some(home.to_owned()) };
    Address::from(url).resolve_in(&environment).map_err(|error| error.to_string())
}

/// How a transport is secured, as a short text.
fn described(transport: &Transport) -> String {
    let tls = |target: &TlsTarget| {
        let trust = match &target.trust {
            Trust::Anybody => "anybody",
            Trust::Issuer(Roots::File(_)) => "ca",
            Trust::IssuerAndName(Roots::File(_)) => "ca+name",
            Trust::Issuer(Roots::System) => "system",
            Trust::IssuerAndName(Roots::System) => "system+name",
        };
        format!("{trust}{}", if target.optional { " or plain" } else { "" })
    };
    match transport {
        Transport::Plain => "plain".to_owned(),
        Transport::PlainElseTls(target) => format!("plain or {}", tls(target)),
        Transport::Tls(target) => tls(target),
    }
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn plain_text_to_another_host_is_only_asked_for_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    let transport = |host: &str, mode: &str| {
        let query = if mode.is_empty() { String::new() } else { format!("?sslmode={mode}") };
        let route = resolve(&format!("postgres://me@{host}/db{query}"), home.path(), &[]).unwrap();
        described(&route.places[0].transport)
    };
    for (mode, here, elsewhere) in [
        ("", "plain or anybody", "anybody"),
        ("disable", "plain", "plain"),
        ("allow", "plain or anybody", "anybody"),
        ("prefer", "anybody or plain", "anybody"),
        ("require", "anybody", "anybody"),
    ] {
        for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.3.4.5", "[::1]", "[::ffff:127.0.0.1]"] {
            assert_eq!(transport(host, mode), here, "{host} {mode}");
        }
        for host in ["db.example", "localhost.example", "10.0.0.1", "[2001:db8::1]"] {
            assert_eq!(transport(host, mode), elsewhere, "{host} {mode}");
        }
        assert_eq!(transport("%2Frun%2Fpg", mode), "plain", "a socket");
    }
}

#[test]
fn root_certificates_are_looked_for_where_libpq_does() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("ca.crt");
    write(&file, "", 0o644);
    let with = |query: &str, variables: &[(&str, &str)]| {
        let url = format!("postgres://me@db.example/db?{query}").replace("FILE", file.to_str().unwrap());
        resolve(&url, home.path(), variables).map(|route| described(&route.places[0].transport))
    };
    let named = [("PGSSLROOTCERT", file.to_str().unwrap())];
    assert_eq!(with("sslmode=require&sslrootcert=FILE", &[]).unwrap(), "ca", "as verify-ca");
    assert_eq!(with("sslmode=verify-ca&sslrootcert=FILE", &[]).unwrap(), "ca");
    assert_eq!(with("sslmode=verify-full", &named).unwrap(), "ca+name");
    assert_eq!(with("", &[("PGSSLMODE", "verify-full"), named[0]]).unwrap(), "ca+name");
    assert_eq!(with("sslrootcert=system", &[]).unwrap(), "system+name");
    for (query, why) in [
        ("sslmode=verify-full", "no root certificate"),
        ("sslmode=verify-ca", "no root certificate"),
        ("sslmode=require&sslrootcert=system", "needs sslmode=verify-full"),
        ("sslmode=require&sslrootcert=/nowhere", "/nowhere is not there"),
        ("sslmode=Require", "none of libpq's"),
        ("channel_binding=require", "\"channel_binding\" is not supported"),
    ] {
        let error = with(query, &[]).unwrap_err();
        assert!(error.contains(why), "{query}: {error}");
    }
    std::fs::create_dir(home.path().join(".postgresql")).unwrap();
    write(&home.path().join(".postgresql/root.crt"), "", 0o644);
    assert_eq!(with("", &[]).unwrap(), "ca");
    assert_eq!(with("sslmode=verify-full", &[]).unwrap(), "ca+name");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (certificate, key) = (home.path().join("me.crt"), home.path().join("me.key"));
    write(&certificate, "", 0o644);
    write(&key, "", 0o604);
    let url = |key: &str| {
        format!("postgres://db.example/db?sslmode=require&sslcert={}{key}", certificate.display())
    };
    let with_key = url(&format!("&sslkey={}", key.display()));
    let error = resolve(&with_key, home.path(), &[]).err().unwrap();
    assert!(error.contains("me.key; its mode has to be 0600"), "{error}");
    write(&key, "", 0o600);
    let found = resolve(&with_key, home.path(), &[]).unwrap();
    let Transport::Tls(target) = &found.places[0].transport else { panic!("TLS") };
    assert_eq!(target.identity, Some(Identity { certificate: certificate.clone(), key: key.clone() }));
    let error = resolve(&url(""), home.path(), &[]).err().unwrap();
    assert!(error.contains("there is no sslkey"), "{error}");
}

/// The password for the first host.
fn password(route: &Route) -> Option<String> {
    password_at(&route.places[0])
}

/// The password in the options, read from the URL that sqlx prints them as.
fn password_at(place: &Place) -> Option<String> {
    let url = place.options.to_url_lossy();
    url.password().map(|text| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned())
}

#[test]
fn passwords_come_from_the_url_the_environment_or_files() {
    let home = tempfile::tempdir().unwrap();
    let (passfile, alone) = (home.path().join(".pgpass"), home.path().join("password"));
    write(&passfile, "db.example:5432:app:me:from-pgpass\nlocalhost:*:*:*:by-socket\n", 0o600);
    write(&alone, "s3:cr et\r\n", 0o644);
    let of = |url: &str, variables: &[(&str, &str)]| password(&resolve(url, home.path(), variables).unwrap());
    let url = "postgres://me@db.example/app?sslmode=require";
    assert_eq!(of(url, &[]).as_deref(), Some("from-pgpass"));
    assert_eq!(of("postgres://me@db.example/other?sslmode=require", &[]), None);
    assert_eq!(of("postgres://me@%2Fvar%2Frun%2Fpostgresql/app", &[]).as_deref(), Some("by-socket"));
    assert_eq!(of("postgres://me:in%40url@db.example/app?sslmode=require", &[]).as_deref(), Some("in@url"));
    let other = home.path().join("other");
    write(&other, "*:*:*:*:from-other\n", 0o600);
    assert_eq!(of(url, &[("PGPASSFILE", other.to_str().unwrap())]).as_deref(), Some("from-other"));
    let passed = format!("{url}&passfile={}", other.display());
    assert_eq!(of(&passed, &[]).as_deref(), Some("from-other"));

    // A passfile is ignored if others may have read or changed it.
    write(&other, "*:*:*:*:from-other\n", 0o640);
    let route = resolve(&passed, home.path(), &[]).unwrap();
    assert_eq!(password(&route), None);
    assert!(route.warnings.iter().any(|line| line.contains("other is ignored")), "{:?}", route.warnings);

    let mut address = Address { password_file: Some(alone.clone()), ..Address::from(url) };
    assert_eq!(password(&address.resolve().unwrap()).as_deref(), Some("s3:cr et"));
    address.url = "postgres://me:x@db.example/app".to_owned();
    assert!(address.resolve().err().unwrap().to_string().contains("a password file is named too"));
    write(&alone, "\n", 0o600);
    address.url = url.to_owned();
    assert!(address.resolve().err().unwrap().to_string().contains("does not hold a password"));
}

#[test]
fn a_password_on_the_command_line_is_told_of_and_never_shown() {
    let address = Address {
        in_arguments: true,
        ..Address::from("postgres://me:s3cr%25et@db.example/app?sslmode=disable&user=me")
    };
    let route = address.resolve().unwrap();
    assert!(route.warnings[0].contains("can be seen by everybody"), "{:?}", route.warnings);
    assert!(route.warnings[1].contains("in plain text"), "{:?}", route.warnings);
    for text in [format!("{address} {address:?}"), route.warnings.join("\n")] {
        assert!(!text.contains("s3cr"), "{text}");
    }
    for url in ["postgres://me:s3cret@db:port/x", "postgres://me:s3cret@db/x?password=s3cret&sslmode=s"] {
        let error = Address::from(url).resolve().err().unwrap();
        let text = format!("{error} {error:?}");
        assert!(text.contains("postgres://me@db") && !text.contains("s3cret"), "{text}");
    }
}

#[test]
fn urls_are_libpq_s() {
    let home = tempfile::tempdir().unwrap();
    let options = |url: &str| resolve(url, home.path(), &[]).unwrap().places[0].options.clone();
    let found = options("postgres://a%40b@[::1]:77/db?options=-csearch_path%3Da%5C%20b%20--work-mem%3D8MB");
    assert_eq!((found.get_host(), found.get_port()), ("::1", 77));
    assert_eq!((found.get_username(), found.get_database()), ("a@b", Some("db")));
    assert_eq!(found.get_options(), Some("-c search_path=a\\ b -c work_mem=8MB"));
    let found = options("postgresql:///x?host=/run/pg&port=5&dbname=y&user=u");
    assert_eq!(found.get_socket().and_then(|path| path.to_str()), Some("/run/pg"));
    assert_eq!((found.get_username(), found.get_database()), ("u", Some("y")));
    let route =
        resolve("postgres://db.example/x?hostaddr=10.0.0.9&sslmode=require", home.path(), &[]).unwrap();
    let Transport::Tls(target) = &route.places[0].transport else { panic!("TLS") };
    assert_eq!((&*target.host, &*target.name), ("10.0.0.9", "db.example"));
    let route = resolve("postgres://localhost/x?keepalives=1", home.path(), &[]).unwrap();
    assert_eq!(route.warnings, ["keepalives in the datastore's URL is ignored"]);
}

#[test]
fn a_url_may_name_a_schema() {
    for (url, database, schema) in [
        ("postgres://u@h/d", "postgres://u@h/d", None),
        ("postgres://u@h/d?schema=a", "postgres://u@h/d", Some("a")),
        (
            "postgres://u@h/d?sslmode=require&schema=a%20b%26c&user=u",
            "postgres://u@h/d?sslmode=require&user=u",
            Some("a b&c"),
        ),
        ("postgres://u@h/d?schema=a&schema=b", "postgres://u@h/d", Some("b")),
        ("postgres://u@h/d?schema=", "postgres://u@h/d", Some("")),
        ("postgres://u@h/d?the_schema=a", "postgres://u@h/d?the_schema=a", None),
    ] {
        assert_eq!(Address::from(url).split(), (database.into(), schema.map(str::to_owned)), "{url}");
    }
    let home = tempfile::tempdir().unwrap();
    assert_eq!(
        resolve("postgres://u@h/d?schema=a&sslmode=require", home.path(), &[]).unwrap().places.len(),
        1
    );
}

#[test]
fn lists_of_hosts_are_libpq_s() {
    let home = tempfile::tempdir().unwrap();
    let names = |url: &str, variables: &[(&str, &str)]| -> Result<Vec<String>, String> {
        let route = resolve(url, home.path(), variables)?;
        Ok(route.places.iter().map(|place| place.name.clone()).collect())
    };
    let environment = [("PGHOST", "e,f"), ("PGPORT", "9")];
    for (url, variables, expected) in [
        ("postgres://u@a,b:6,[::1]:7/d?sslmode=require", &[][..], vec!["a:5432", "b:6", "[::1]:7"]),
        ("postgres://u:p@a,b/d?sslmode=require", &environment[1..], vec!["a:5432", "b:5432"]),
        ("postgres://u@a/d?sslmode=require", &environment, vec!["a:9"]),
        ("postgres:///d?sslmode=require", &environment, vec!["e:9", "f:9"]),
        ("postgres://x:1/d?host=a,b,c&port=1,2,3&sslmode=require", &[], vec!["a:1", "b:2", "c:3"]),
        ("postgres:///d?host=a,b&port=7&sslmode=require", &[], vec!["a:7", "b:7"]),
        ("postgres://%2Frun%2Fone,%2Frun%2Ftwo:5433/d", &[], vec!["/run/one:5432", "/run/two:5433"]),
        ("postgres://u@a?target_session_attrs=primary&sslmode=require", &[], vec!["a:5432"]),
    ] {
        assert_eq!(names(url, variables).unwrap(), expected, "{url}");
    }
    for (url, why) in [
        ("postgres://a,b/d?port=1,2,3", "2 hosts and 3 ports"),
        ("postgres://a,b/d?hostaddr=10.0.0.1", "2 hosts and 1 addresses"),
        ("postgres://a,b/d?hostaddr=10.0.0.1,b", "hostaddr"),
        ("postgres://a:1,b:0/d", "port"),
        ("postgres://a:1,b:two/d", "port"),
        ("postgres://a/d?target_session_attrs=master", "\"master\" is none of libpq's"),
        ("postgres://a/d?load_balance_hosts=yes", "\"yes\" is none of libpq's"),
        ("postgres://a/d?connect_timeout=soon", "connect_timeout"),
    ] {
        let error = names(url, &[]).unwrap_err();
        assert!(error.contains(why), "{url}: {error}");
    }
    let url = "postgres://a,b/d?target_session_attrs=read-write&load_balance_hosts=random&connect_timeout=1&sslmode=require";
    let route = resolve(url, home.path(), &[]).unwrap();
    let two = Some(Duration::from_secs(2));
    assert_eq!((route.wanted, route.shuffled, route.limit), (Wanted::ReadWrite, true, two));
    let url = "postgres://a/d?connect_timeout=0&sslmode=require";
    let variables =
        [("PGTARGETSESSIONATTRS", "primary"), ("PGCONNECT_TIMEOUT", "7"), ("PGLOADBALANCEHOSTS", "random")];
    let route = resolve(url, home.path(), &variables).unwrap();
    assert_eq!((route.wanted, route.shuffled), (Wanted::Primary, true));
}

#[test]
fn each_host_has_its_own_password_and_name() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    write(&file, "a:*:*:*:of-a\nb:6:*:*:of-b\nb:*:*:*:of-another-b\n", 0o600);
    let url = "postgres://u@a,b:6,b/d?hostaddr=10.0.0.1,10.0.0.2,10.0.0.3&sslmode=require";
    let route = resolve(url, home.path(), &[]).unwrap();
    let passwords: Vec<_> = route.places.iter().map(|place| password_at(place).unwrap()).collect();
    assert_eq!(passwords, ["of-a", "of-b", "of-another-b"]);
    let targets: Vec<_> = route
        .places
        .iter()
        .map(|place| match &place.transport {
            Transport::Tls(target) => (&*target.name, &*target.host, target.port),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(targets, [("a", "10.0.0.1", 5432), ("b", "10.0.0.2", 6), ("b", "10.0.0.3", 5432)]);
    // What is true of all hosts is told once.
    write(&file, "", 0o644);
    let warnings = resolve(url, home.path(), &[]).unwrap().warnings;
    assert_eq!(warnings.iter().filter(|warning| warning.contains("is ignored")).count(), 1, "{warnings:?}");
}
