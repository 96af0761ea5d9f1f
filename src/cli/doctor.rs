//! `rowplane doctor`: looks for what is wrong with a data directory, a store, a running server and their surroundings, and names
//! the step that mends it.

mod directory;
mod server;
mod store;
mod surroundings;

use std::path::PathBuf;

use clap::Args;

use super::args::StoreArgs;
use super::error::Error;
use super::keys::KeyArgs;
use super::output::{OutputArgs, Palette};
use crate::tree::{Value, json};

/// Arguments of `rowplane doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// The kubeconfig that kubectl uses [default: $KUBECONFIG, or else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

/// The result of looking at one thing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The thing: `disk`, `certificates`, …
    subject: &'static str,
    verdict: Verdict,
    /// The observation, in a sentence.
    text: String,
    /// The step that mends it; empty if nothing is wrong.
    cure: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    /// Works now, and will not do so for long, or not for everybody.
    Warning,
    Bad,
}

impl Finding {
    fn good(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Good, text: text.into(), cure: String::new() }
    }

    fn warning(subject: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Warning, text: text.into(), cure: cure.into() }
    }

    fn bad(subject: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Bad, text: text.into(), cure: cure.into() }
    }

    fn shown(&self, palette: Palette) -> String {
        let verdict = match self.verdict {
            Verdict::Good => palette.good("ok     "),
            Verdict::Warning => palette.doubtful("warning"),
            Verdict::Bad => palette.bad("wrong  "),
        };
        let mut text = format!("{verdict}  {:<13} {}\n", self.subject, self.text);
        if !self.cure.is_empty() {
            text.push_str(&format!("{:<24}-> {}\n", "", self.cure));
        }
        text
    }

    fn document(&self) -> Value {
        let verdict = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warning",
            Verdict::Bad => "wrong",
        };
        json!({
            "subject": self.subject,
            "verdict": verdict,
            "text": self.text.as_str(),
            "cure": self.cure.as_str(),
        })
    }
}

/// Looks at everything, and fails if something is wrong.
pub async fn run(arguments: DoctorArgs) -> Result<(), Error> {
    let DoctorArgs { store, kubeconfig, keys, output } = arguments;
    let (datastore, data_dir) = (store.datastore()?, store.data_dir_or_default().to_owned());
    let mut findings = directory::look(&data_dir);
    findings.extend(store::look(&datastore, &keys).await);
    let served = server::look(&data_dir, &datastore).await;
    findings.extend(served.findings);
    findings.extend(surroundings::look(kubeconfig, &data_dir, served.url.as_deref()));
    let wrong = findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
    let document = Value::Array(findings.iter().map(Finding::document).collect());
    output.print(&document, |palette| findings.iter().map(|finding| finding.shown(palette)).collect())?;
    match wrong {
        0 => Ok(()),
        1 => Err(Error::Refused("something is wrong".to_owned())),
        several => Err(Error::Refused(format!("{several} things are wrong"))),
    }
}
