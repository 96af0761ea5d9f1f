//! The place where rowplane in kube-apiserver's place is to keep its state, as its stand-in for etcd tells it.
//!
//! The two may be in containers with file systems of their own, where etcd's data directory is another one for each. So
//! the stand-in leaves a mark in the directory, and a server uses the directory only if it finds this mark there.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::command_line::{Config, Durability};
use crate::server::datastore::Datastore;

/// The path of the answer.
pub const PATH: &str = "/rowplane/v1/datastore";

/// The file with the mark.
const MARK: &str = "rowplane-etcd";

/// The answer at [`PATH`].
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Place {
    /// `memory:`, or `sqlite:` and an absolute path in etcd's data directory.
    pub datastore: String,
    durability: String,
    /// The content of the mark, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    /// Why the mark could not be written.
    #[serde(skip)]
    trouble: Option<String>,
}

impl Place {
    /// Leaves the mark, if state is to be kept.
    pub fn of_etcd(config: &Config) -> Self {
        if config.durability == Durability::None {
            let datastore = Datastore::Memory.to_string();
            return Self { datastore, durability: "none".to_owned(), mark: None, trouble: None };
        }
        let directory = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
        let (mark, trouble) = match leave_mark(&directory) {
            Ok(mark) => (Some(mark), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let datastore = Datastore::in_data_dir(&directory).to_string();
        Self { datastore, durability: "full".to_owned(), mark, trouble }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses an answer; `None` if it is another program's.
    pub fn from_json(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The file of the database; `None` if state is not to be kept.
    pub fn file(&self) -> Option<PathBuf> {
        match Datastore::parse(&self.datastore) {
            Ok(Datastore::Sqlite(path)) => Some(path),
            _ => None,
        }
    }

    /// Whether this process sees the directory of the stand-in under the same path.
    pub fn is_seen(&self, file: &Path) -> bool {
        let found = std::fs::read_to_string(file.with_file_name(MARK)).ok();
        found.is_some() && found == self.mark
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let datastore = &self.datastore;
        match (self.file(), &self.trouble) {
            (None, _) => {
                f.write_str("rowplane as kube-apiserver keeps its state in memory, by --unsafe-no-fsync")
            }
            (Some(_), None) => write!(
                f,
                "rowplane as kube-apiserver keeps its state in {datastore}, if that directory is mounted there, too"
            ),
            (Some(_), Some(why)) => {
                write!(
                    f,
                    "rowplane as kube-apiserver does not use {datastore}: its directory cannot be written: {why}"
                )
            }
        }
    }
}

/// Writes a new mark, and returns it.
fn leave_mark(directory: &Path) -> io::Result<String> {
    let mark = uuid::Uuid::new_v4().to_string();
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join(MARK), &mark)?;
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::etcd::{Asked, parse};

    fn place(flags: &[String]) -> Place {
        let Ok(Asked::Serve(config)) = parse(flags.iter().cloned(), |_| None) else { panic!("{flags:?}") };
        Place::of_etcd(&config)
    }

    #[test]
    fn a_directory_is_used_by_those_who_see_it() {
        let dir = tempfile::tempdir().unwrap();
        let flag = format!("--data-dir={}/etcd", dir.path().display());
        let place = place(std::slice::from_ref(&flag));
        let file = dir.path().join("etcd/state.db");
        assert_eq!(place.datastore, format!("sqlite:{}", file.display()));
        let told = Place::from_json(place.to_json().as_bytes()).unwrap();
        assert_eq!((&told, told.file()), (&place, Some(file.clone())));
        assert!(told.is_seen(&file));
        assert!(!told.is_seen(&dir.path().join("state.db")), "nobody has marked this directory");
        let next = self::place(&[flag]);
        assert!(next.is_seen(&file) && !place.is_seen(&file), "another stand-in's mark");
    }

    #[test]
    fn state_that_need_not_be_kept_is_in_memory_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let place =
            place(&[format!("--data-dir={}", dir.path().display()), "--unsafe-no-fsync=true".to_owned()]);
        assert_eq!(place.to_json(), r#"{"datastore":"memory:","durability":"none"}"#);
        assert_eq!((place.file(), std::fs::read_dir(dir.path()).unwrap().count()), (None, 0));
    }

    #[test]
    fn other_programs_answers_are_none() {
        for body in ["", "404 page not found\n", r#"{"etcdserver":"3.6.0"}"#] {
            assert_eq!(Place::from_json(body.as_bytes()), None, "{body}");
        }
    }

    /// A directory that cannot be written is used by nobody.
    #[test]
    fn no_mark_no_use() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let place = place(&[format!("--data-dir={}/below", file.display())]);
        assert!(!place.is_seen(&place.file().unwrap()));
        assert!(place.to_string().contains("its directory cannot be written"), "{place}");
    }
}
