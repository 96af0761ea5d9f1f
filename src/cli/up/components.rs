//! The programs of upstream that make a cluster of an API server.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::cli::error::Error;
use crate::http::documents::discovery::version;

pub const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub const SCHEDULER: &str = "kube-scheduler";
/// The release that is offered where programs are missing.
const RELEASE: &str = "v1.37.2";
/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(30);

/// The programs, of the minor version of the API that is served.
#[derive(Debug)]
pub struct Components {
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
    /// The version of the controller manager, such as `v1.37.2`, for nodes that join.
    pub version: String,
}

impl Components {
    /// Finds the programs in a directory, or else on the PATH.
    pub async fn find(dir: Option<&Path>) -> Result<Self, Error> {
        if let Some(dir) = dir.filter(|dir| !dir.is_dir()) {
            return Err(Error::Refused(format!("--components: {} is no directory", dir.display())));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = dir.map_or_else(|| std::env::split_paths(&path).collect(), |dir| vec![dir.to_owned()]);
        let found = [CONTROLLER_MANAGER, SCHEDULER].map(|name| find(name, &dirs));
        let [Some(controller_manager), Some(scheduler)] = found else {
            let missing = [CONTROLLER_MANAGER, SCHEDULER].into_iter().zip(&found);
            let missing: Vec<_> =
                missing.filter(|(_, found)| found.is_none()).map(|(name, _)| name).collect();
            return Err(Error::Refused(missing_text(&missing, dir)));
        };
        let version = version_of(&controller_manager).await?;
        version_of(&scheduler).await?;
        Ok(Self { controller_manager, scheduler, version })
    }
}

/// Absolute, since a child may be told to look elsewhere.
fn find(name: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    let found = dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())?;
    std::path::absolute(found).ok()
}

fn missing_text(missing: &[&str], dir: Option<&Path>) -> String {
    let place = dir.map_or_else(|| "on the PATH".to_owned(), |dir| format!("in {}", dir.display()));
    let (names, verb) = (missing.join(" and "), if missing.len() == 1 { "is" } else { "are" });
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let urls = missing.iter().map(|name| format!("https://dl.k8s.io/{RELEASE}/bin/linux/{machine}/{name}"));
    let urls = urls.collect::<Vec<_>>().join(" ");
    let how = match std::env::consts::OS {
        "linux" => format!("curl -fL --remote-name-all {urls} && chmod +x {}", missing.join(" ")),
        system => format!("upstream has none for {system}; for Linux: {urls}"),
    };
    format!(
        "{names} {verb} not {place}; get what is missing, and name its directory with --components: {how}"
    )
}

/// The version that a program prints, which has to be of the minor version that is served.
async fn version_of(program: &Path) -> Result<String, Error> {
    let failed = |source| Error::Command { name: program.into(), source };
    let mut command = tokio::process::Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(output) = tokio::time::timeout(PATIENCE, command.output()).await else {
        return Err(failed(std::io::ErrorKind::TimedOut.into()));
    };
    let text = String::from_utf8_lossy(&output.map_err(failed)?.stdout).into_owned();
    let served = format!("v{}", version::emulated());
    match text.trim().strip_prefix("Kubernetes ") {
        Some(version) if version.strip_prefix(&served).is_some_and(|rest| rest.starts_with('.')) => {
            Ok(version.to_owned())
        }
        Some(version) => Err(Error::Refused(format!(
            "{} is of {version}, and this server of {served}: the minor versions have to be the same; \
             https://dl.k8s.io/{RELEASE}/ has one that fits",
            program.display()
        ))),
        None => {
            let name = program.file_name().unwrap_or(OsStr::new("")).to_string_lossy();
            Err(Error::Refused(format!(
                "{} does not say its version by --version, so it is no {name} of Kubernetes",
                program.display()
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_place() {
        let text = missing_text(&[SCHEDULER], None);
        assert!(text.starts_with("kube-scheduler is not on the PATH"), "{text}");
        assert!(text.contains("https://dl.k8s.io/v1.37.2/bin/linux/") && !text.contains("manager"), "{text}");
        let text = missing_text(&[CONTROLLER_MANAGER, SCHEDULER], Some(Path::new("/x")));
        assert!(text.starts_with("kube-controller-manager and kube-scheduler are not in /x"), "{text}");
    }
}
