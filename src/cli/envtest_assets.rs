//! `rowplane envtest-assets DIR`: fills a directory in which test environments find kube-apiserver, etcd and kubectl.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::error::Error;

/// Names of programs that this program can replace.
pub const STAND_INS: [&str; 2] = ["kube-apiserver", "etcd"];
const KUBECTL: &str = "kubectl";

/// Fills the directory, and prints what it did and how to use it.
pub fn fill(dir: &Path) -> Result<(), Error> {
    let kubectl = link_all(dir)?;
    let dir = std::path::absolute(dir).map_err(|source| Error::Assets { path: dir.to_owned(), source })?;
    let missing = if kubectl.is_some() { "" } else { "# there is no kubectl on the PATH, so none is here\n" };
    let mut out = io::stdout().lock();
    writeln!(out, "{missing}export KUBEBUILDER_ASSETS={}", dir.display()).map_err(Error::Output)
}

/// Fills the directory. Returns the path of kubectl if there is one.
pub fn link_all(dir: &Path) -> Result<Option<PathBuf>, Error> {
    let failed = |source| Error::Assets { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    for name in STAND_INS {
        put(dir, name, &program).map_err(failed)?;
    }
    let kubectl = find(KUBECTL, std::env::var_os("PATH").as_deref());
    if let Some(kubectl) = &kubectl {
        put(dir, KUBECTL, kubectl).map_err(failed)?;
    }
    Ok(kubectl)
}

/// Creates a link, replacing one of an earlier call.
fn put(dir: &Path, name: &str, program: &Path) -> io::Result<()> {
    let link = dir.join(name);
    if link.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        std::fs::remove_file(&link)?;
    }
    symlink(program, link)
}

fn find(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path?).map(|dir| dir.join(name));
    candidates.into_iter().find(|candidate| candidate.is_file()).and_then(|found| found.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_can_be_filled_again_and_foreign_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            fill(dir.path()).unwrap();
        }
        let program = std::env::current_exe().unwrap();
        for name in STAND_INS {
            assert_eq!(std::fs::read_link(dir.path().join(name)).unwrap(), program);
        }
        std::fs::remove_file(dir.path().join("etcd")).unwrap();
        std::fs::write(dir.path().join("etcd"), "a real one").unwrap();
        assert!(matches!(fill(dir.path()), Err(Error::Assets { .. })));
        assert_eq!(std::fs::read_to_string(dir.path().join("etcd")).unwrap(), "a real one");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(KUBECTL), "").unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), dir.path()]).unwrap();
        assert!(find(KUBECTL, Some(&path)).unwrap().ends_with(KUBECTL));
        assert_eq!(find("nothing", Some(&path)), None);
    }
}
