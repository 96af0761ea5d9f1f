//! The data directory: its owner and mode, the disk below it, and its certificates.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::Finding;
use crate::cli::output::bytes;
use crate::kinds::behavior::columns::age;
use crate::x509::Certificate;

/// The free space below which a disk is nearly full: a database and its log cannot grow on it for long.
const LITTLE: u64 = 256 << 20;
/// The time before its end at which a certificate is told. Servers renew their own earlier.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Looks at a directory, which may not be there yet.
pub fn look(dir: &Path) -> Vec<Finding> {
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("{} is not there", dir.display());
            return vec![Finding::warning(
                "directory",
                text,
                "start a server, which makes it, or name it with --data-dir",
            )];
        }
        Err(error) => {
            let text = format!("{}: {error}", dir.display());
            return vec![Finding::bad("directory", text, "name another with --data-dir")];
        }
        Ok(_) => {}
    }
    let mut findings = vec![rights(dir)];
    findings.extend(disk(dir));
    findings.extend(certificates(&dir.join("pki")));
    findings
}

fn rights(dir: &Path) -> Finding {
    let shown = dir.display();
    let Ok(metadata) = std::fs::metadata(dir) else {
        return Finding::bad("directory", format!("{shown} is gone"), "");
    };
    let (owner, own) = (metadata.uid(), geteuid().as_raw());
    if !metadata.is_dir() {
        return Finding::bad("directory", format!("{shown} is no directory"), "name another with --data-dir");
    }
    if access(dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let text = format!("{shown} belongs to user {owner}, and user {own} may not write it");
        return Finding::bad("directory", text, format!("chown -R {own} {shown}"));
    }
    if metadata.mode() & 0o077 != 0 {
        let text = format!("other users may look into {shown} (mode {:o})", metadata.mode() & 0o777);
        return Finding::warning("directory", text, format!("chmod 700 {shown}"));
    }
    Finding::good("directory", format!("{shown}, of user {owner} alone"))
}

fn disk(dir: &Path) -> Option<Finding> {
    let space = statvfs(dir).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    Some(judge_space(dir, free, space.f_favail))
}

fn judge_space(dir: &Path, free: u64, files: u64) -> Finding {
    let text = format!("{} free below {}", bytes(free), dir.display());
    let cure = format!("make room on the disk: df -h {0}; du -sh {0}", dir.display());
    if files == 0 {
        return Finding::bad("disk", format!("no more files can be made below {}", dir.display()), cure);
    }
    match free {
        0..LITTLE => Finding::bad("disk", text, cure),
        _ => Finding::good("disk", text),
    }
}

/// The certificates that a server has made, in files that end in `.crt`.
fn certificates(pki: &Path) -> Vec<Finding> {
    let Ok(entries) = std::fs::read_dir(pki) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "crt"));
    paths.sort();
    let mut findings: Vec<Finding> =
        paths.iter().filter_map(|path| certificate(path, Timestamp::now()).err()).collect();
    if findings.is_empty() && !paths.is_empty() {
        findings
            .push(Finding::good("certificates", format!("{} in {} are valid", paths.len(), pki.display())));
    }
    findings
}

/// The first certificate of a file.
fn certificate(path: &Path, now: Timestamp) -> Result<(), Finding> {
    let shown = path.display();
    let parsed = CertificateDer::from_pem_file(path).ok().and_then(|der| Certificate::parse(&der).ok());
    let parsed = parsed.ok_or_else(|| {
        let cure = format!("rm {shown}, and start the server, which issues it anew");
        Finding::bad("certificates", format!("{shown} is no certificate"), cure)
    })?;
    let of = |seconds| Timestamp::from_second(seconds).unwrap_or(now);
    let (begin, end) = (of(parsed.not_before), of(parsed.not_after));
    let cure = match parsed.is_ca() {
        true => {
            format!("mv {shown} {shown}.old, restart the servers, and give clients the new admin.kubeconfig")
        }
        false => "restart the server, which renews it".to_owned(),
    };
    let left = end.duration_since(now);
    if now < begin {
        let text = format!("{shown} is not valid before {begin}: the clock of this host is wrong, or was");
        return Err(Finding::bad("certificates", text, "set the clock: timedatectl set-ntp true"));
    }
    if left.is_negative() {
        return Err(Finding::bad("certificates", format!("{shown} ended {} ago", age::text(-left)), cure));
    }
    if left < SOON {
        return Err(Finding::warning("certificates", format!("{shown} ends in {}", age::text(left)), cure));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_disk_that_is_nearly_full_is_wrong() {
        let dir = Path::new("/d");
        assert_eq!(judge_space(dir, LITTLE, 1), Finding::good("disk", "256.0 MiB free below /d"));
        let full = judge_space(dir, LITTLE - 1, 1);
        assert_eq!(
            (full.verdict, full.cure.as_str()),
            (Verdict::Bad, "make room on the disk: df -h /d; du -sh /d")
        );
        assert_eq!(judge_space(dir, LITTLE, 0).text, "no more files can be made below /d");
    }

    #[test]
    fn certificates_that_end_are_told_before() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.crt");
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = rcgen::CertificateParams::default().self_signed(&key).expect("a certificate");
        std::fs::write(&path, made.pem()).expect("write it");
        let parsed = Certificate::parse(made.der()).expect("a certificate");
        let at = |seconds| certificate(&path, Timestamp::from_second(seconds).expect("a time"));
        let day = 24 * 3600;
        assert_eq!(at(parsed.not_after - 8 * day), Ok(()));
        let verdict = |found: Result<(), Finding>| found.map_err(|finding| (finding.verdict, finding.text));
        let text = format!("{} ends in 2d", path.display());
        assert_eq!(verdict(at(parsed.not_after - 2 * day)), Err((Verdict::Warning, text)));
        let text = format!("{} ended 2d ago", path.display());
        assert_eq!(verdict(at(parsed.not_after + 2 * day)), Err((Verdict::Bad, text)));
        let early = at(parsed.not_before - 1).expect_err("too early");
        assert_eq!(
            (early.verdict, early.cure.as_str()),
            (Verdict::Bad, "set the clock: timedatectl set-ntp true")
        );
        std::fs::write(&path, "x").expect("write it");
        assert_eq!(at(0).expect_err("no certificate").text, format!("{} is no certificate", path.display()));
    }
}
