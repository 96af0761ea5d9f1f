//! PostgreSQL's programs, which run as another user if the test runs as root.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

/// A program that runs as PostgreSQL's user, and is killed when this process ends.
pub fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    // PostgreSQL refuses to run as root.
    if let Some((user, group)) = other_user() {
        command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--clear-groups");
    }
    command.arg(program).current_dir("/").stdin(Stdio::null());
    command
}

/// Makes PostgreSQL's user the owner of a file or directory.
pub fn give(path: &Path) {
    if let Some((user, group)) = other_user() {
        std::os::unix::fs::chown(path, Some(user), Some(group)).expect("chown");
    }
}

/// Gives a directory and everything in it to PostgreSQL's user.
pub fn give_all(directory: &Path) {
    give(directory);
    for entry in directory.read_dir().expect("a directory") {
        let entry = entry.expect("an entry");
        match entry.file_type().expect("a type").is_dir() {
            true => give_all(&entry.path()),
            false => give(&entry.path()),
        }
    }
}

/// The directory of PostgreSQL's server programs, found like `tests/support/with-postgres` does.
pub fn tools() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut candidates = versions.into_iter().rev().chain(on_path);
    let found = candidates.find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file());
    found.expect("PostgreSQL's server programs (./test installs them)")
}

/// The user as which PostgreSQL runs if the test runs as root.
fn other_user() -> Option<(u32, u32)> {
    let of = |path: &str| std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(path).expect("stat"));
    if of("/proc/self") != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let entry = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse().expect("a number"));
        Some((fields.next()?, fields.next()?))
    };
    Some(entry("postgres").or_else(|| entry("nobody")).expect("a user to run PostgreSQL as"))
}

pub trait Succeed {
    async fn succeed(&mut self);
}

impl Succeed for Command {
    async fn succeed(&mut self) {
        let output = self.output().await.expect("run a program");
        assert!(output.status.success(), "{self:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
