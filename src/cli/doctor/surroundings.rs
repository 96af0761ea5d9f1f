//! The surroundings of clients: proxies in between, the kubeconfig that kubectl uses, and kubectl itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use url::Url;

use super::Finding;
use crate::http::documents::discovery::version::MINOR;
use crate::tree::Value;
use crate::webhook::CurrentCluster;

/// How many minor versions kubectl may be older or newer than the server.
const SKEW: u32 = 1;
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Looks at the environment. `url` is the server's.
pub fn look(kubeconfig: Option<PathBuf>, data_dir: &Path, url: Option<&str>) -> Vec<Finding> {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut findings = Vec::new();
    if let Some(url) = url {
        findings.extend(proxy(url, environment));
        findings.push(target(kubeconfig, data_dir, url, environment));
    }
    findings.extend(kubectl());
    findings
}

/// A proxy that stands between clients on this machine and the server.
fn proxy(url: &str, environment: impl Fn(&str) -> Option<String>) -> Option<Finding> {
    let (name, proxy) = PROXIES.iter().find_map(|name| Some((*name, environment(name)?)))?;
    let host = Url::parse(url).ok()?.host_str()?.to_owned();
    let exempt = environment("NO_PROXY").or_else(|| environment("no_proxy")).unwrap_or_default();
    let is_exempt = exempt.split(',').map(str::trim).any(|part| {
        part == "*" || part == host || part.strip_prefix('.').is_some_and(|domain| host.ends_with(domain))
    });
    if is_exempt {
        return Some(Finding::good("proxy", format!("{name} is set, and NO_PROXY exempts {host}")));
    }
    let text = format!(
        "{name}={proxy} sends clients of {host} to a proxy (kubectl excepts this machine, others do not)"
    );
    let exempt = if exempt.is_empty() { host } else { format!("{exempt},{host}") };
    Some(Finding::bad("proxy", text, format!("export NO_PROXY={exempt}")))
}

/// The server that kubectl speaks with.
fn target(
    named: Option<PathBuf>,
    data_dir: &Path,
    url: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Finding {
    let own = data_dir.join("admin.kubeconfig");
    let own = std::path::absolute(&own).unwrap_or(own);
    let of_environment = || environment("KUBECONFIG")?.split(':').next().map(PathBuf::from);
    let of_home = || Some(PathBuf::from(environment("HOME")?).join(".kube/config"));
    let cure = format!("export KUBECONFIG={}", own.display());
    let Some(path) = named.or_else(of_environment).or_else(of_home) else {
        return Finding::warning("kubeconfig", "kubectl has none", cure);
    };
    let shown = path.display();
    if !path.exists() {
        return Finding::warning("kubeconfig", format!("{shown} is not there"), cure);
    }
    let (found, wanted) = match (CurrentCluster::read(&path), CurrentCluster::read(&own)) {
        (Ok(found), Ok(wanted)) => (found, wanted),
        (Err(error), _) | (_, Err(error)) => return Finding::bad("kubeconfig", error.to_string(), cure),
    };
    if found.server.trim_end_matches('/') != url {
        let text = format!("{shown} points to {}, not to {url}", found.server);
        return Finding::warning("kubeconfig", text, cure);
    }
    if found.authorities != wanted.authorities {
        let text = format!(
            "{shown} points to {url}, and believes another CA than this server's: the directory was made anew"
        );
        return Finding::bad("kubeconfig", text, cure);
    }
    Finding::good("kubeconfig", format!("{shown} points to {url}"))
}

/// The kubectl of the path; `None` without one.
fn kubectl() -> Option<Finding> {
    let output = Command::new("kubectl").args(["version", "--client", "--output=json"]).output().ok()?;
    let version: Value = serde_json::from_slice(&output.stdout).ok()?;
    let minor = version["clientVersion"]["minor"].as_str()?.trim_end_matches('+').parse().ok()?;
    Some(judge_minor(minor, MINOR.parse().ok()?))
}

fn judge_minor(client: u32, server: u32) -> Finding {
    if client.abs_diff(server) <= SKEW {
        return Finding::good("kubectl", format!("1.{client}"));
    }
    let text = format!("1.{client} is more than one minor version away from the server's 1.{server}");
    Finding::warning(
        "kubectl",
        text,
        format!("install kubectl 1.{server}: https://kubernetes.io/docs/tasks/tools/"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn proxies_between_are_told() {
        let with = |variables: &'static [(&str, &str)]| {
            let environment = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            proxy("https://127.0.0.1:6443", environment)
        };
        assert_eq!(with(&[]), None);
        let wrong = with(&[("https_proxy", "http://p:1"), ("NO_PROXY", "a.example")]).expect("a finding");
        assert_eq!(
            (wrong.verdict, wrong.cure.as_str()),
            (Verdict::Bad, "export NO_PROXY=a.example,127.0.0.1")
        );
        let fine = with(&[("ALL_PROXY", "http://p:1"), ("no_proxy", "a, 127.0.0.1")]).expect("a finding");
        assert_eq!(fine.verdict, Verdict::Good);
    }

    #[test]
    fn an_old_kubectl_is_told() {
        assert_eq!(judge_minor(36, 37), Finding::good("kubectl", "1.36"));
        assert_eq!(
            judge_minor(35, 37).text,
            "1.35 is more than one minor version away from the server's 1.37"
        );
    }
}
