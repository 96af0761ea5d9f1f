//! The choice of a database by the scheme of a URL.

use std::path::{Path, PathBuf};

use super::Datastore;

/// Why a URL names no database. The text does not repeat the URL, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidUrl(String);

impl Datastore {
    /// The default: a file beside the certificates.
    pub fn in_data_dir(data_dir: &Path) -> Self {
        Datastore::Sqlite(data_dir.join("state.db"))
    }

    pub fn parse(url: &str) -> Result<Self, InvalidUrl> {
        let refuse = |reason: &str| InvalidUrl(reason.to_owned());
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(refuse("it must begin with sqlite:, postgres: or memory:"));
        };
        match scheme {
            "memory" if matches!(rest, "" | "//") => Ok(Datastore::Memory),
            "memory" => Err(refuse("memory: stands alone")),
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                "" => Err(refuse("sqlite: needs a path, as in sqlite:/var/lib/rowplane/state.db")),
                ":memory:" => Err(refuse("for state in memory, use memory:")),
                path if path.contains(['?', '\0']) => Err(refuse("sqlite: takes a path and no parameters")),
                path => Ok(Datastore::Sqlite(PathBuf::from(path))),
            },
            "postgres" | "postgresql" if rest.starts_with("//") => Ok(Datastore::Postgres(url.into())),
            "postgres" | "postgresql" => {
                Err(refuse("PostgreSQL needs a URL such as postgres://user@host/database"))
            }
            "mysql" | "mariadb" => {
                Err(refuse("MySQL and MariaDB are not supported; use sqlite:, postgres: or memory:"))
            }
            "http" | "https" | "unix" => Err(refuse(
                "that is an address of an etcd; rowplane keeps its state itself, in sqlite:, postgres: or memory:",
            )),
            // The text may contain a password, so only the part before the first colon is repeated.
            other => Err(refuse(&format!("unknown scheme {other:?}, use sqlite:, postgres: or memory:"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes() {
        let path = |text: &str| Datastore::Sqlite(PathBuf::from(text));
        assert_eq!(Datastore::parse("sqlite:a/b.db").unwrap(), path("a/b.db"));
        assert_eq!(Datastore::parse("sqlite:///a/b.db").unwrap(), path("/a/b.db"));
        assert_eq!(Datastore::parse("sqlite:/a/b.db").unwrap(), path("/a/b.db"));
        assert_eq!(Datastore::parse("memory:").unwrap(), Datastore::Memory);
        for url in ["postgres://h/d", "postgresql://u:p@h/d?sslmode=require"] {
            assert_eq!(Datastore::parse(url).unwrap(), Datastore::Postgres(url.into()));
        }
        let bad = [
            "",
            "state.db",
            "mysql://u:secret@h",
            "other://u:secret@h",
            "https://u:secret@h",
            "sqlite:",
            "sqlite://",
            "sqlite::memory:",
            "postgres:x",
            "memory:x",
        ];
        for url in bad {
            let text = Datastore::parse(url).unwrap_err().to_string();
            assert!(!text.is_empty() && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let shown = |url: &str| Datastore::parse(url).unwrap().to_string();
        assert_eq!(shown("postgres://u:p@ss@h:1/d?password=x"), "postgres://u@h:1/d");
        assert_eq!(shown("postgres://h/d"), "postgres://h/d");
        assert_eq!(
            format!("{:?}", Datastore::parse("postgres://u:p@h/d").unwrap()),
            "Datastore(postgres://u@h/d)"
        );
    }
}
