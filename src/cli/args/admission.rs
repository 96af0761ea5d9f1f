//! The flags about admission.

use std::path::PathBuf;

use clap::Args;

use crate::api::admission::Settings;
use crate::api::admission::configuration::TolerationSeconds;
use crate::cli::error::Error;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Admission flags")]
pub struct AdmissionArgs {
    /// Admission plugins to switch on beside those that are on by default: kube-apiserver's, and NodeRestriction
    #[arg(long, value_name = "PLUGIN", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to switch off although they are on by default
    #[arg(long, value_name = "PLUGIN", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// A file of kind AdmissionConfiguration with the configurations of admission plugins
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,

    /// For how long Pods tolerate a Node that is not ready, unless they say so themselves
    #[arg(long, value_name = "SECONDS", default_value_t = TolerationSeconds::default().not_ready, allow_negative_numbers = true)]
    default_not_ready_toleration_seconds: i64,

    /// For how long Pods tolerate a Node that is unreachable, unless they say so themselves
    #[arg(long, value_name = "SECONDS", default_value_t = TolerationSeconds::default().unreachable, allow_negative_numbers = true)]
    default_unreachable_toleration_seconds: i64,
}

/// The plugins that are on without a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defaults {
    /// The plugins of kube-apiserver, and NodeRestriction, which every installer of Kubernetes switches on.
    Own,
    /// The plugins of kube-apiserver.
    Upstreams,
}

impl AdmissionArgs {
    /// Reads the file.
    pub fn into_config(self, defaults: Defaults) -> Result<Settings, Error> {
        let (on, off) = (names(&self.enable_admission_plugins), names(&self.disable_admission_plugins));
        let mut settings = Settings::new(&on, &off).map_err(|problems| match &*problems {
            [problem] => Error::Refused(problem.clone()),
            _ => Error::Refused(format!("[{}]", problems.join(", "))),
        })?;
        settings.tolerations = TolerationSeconds {
            not_ready: self.default_not_ready_toleration_seconds,
            unreachable: self.default_unreachable_toleration_seconds,
        };
        if defaults == Defaults::Own {
            settings = settings.on_by_default("NodeRestriction");
        }
        if let Some(path) = &self.admission_control_config_file {
            settings.read_file(path).map_err(Error::Refused)?;
        }
        Ok(settings)
    }
}

fn names(list: &[String]) -> Vec<&str> {
    list.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect()
}
