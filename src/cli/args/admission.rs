//! The flags about admission.

use std::path::PathBuf;

use clap::Args;

use crate::api::admission::Settings;
use crate::api::admission::configuration::TolerationSeconds;
use crate::cli::error::Error;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Admission flags")]
pub struct AdmissionArgs {
    /// The admission plugins to enable in addition to those that are enabled by default
    #[arg(long, value_name = "PLUGIN", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// The admission plugins to disable although they are enabled by default
    #[arg(long, value_name = "PLUGIN", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// A file of kind AdmissionConfiguration with the configuration of admission plugins
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,

    /// The tolerationSeconds of the toleration for notReady:NoExecute that is added to Pods without one
    #[arg(long, value_name = "SECONDS", default_value_t = TolerationSeconds::default().not_ready, allow_negative_numbers = true)]
    default_not_ready_toleration_seconds: i64,

    /// The tolerationSeconds of the toleration for unreachable:NoExecute that is added to Pods without one
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
