//! The arguments of `rowplane test`.

use std::ffi::OsString;

use clap::{Arg, Args};

use super::admission::Defaults;
use super::serve::ServeArgs;
use crate::cli::config::{Lifetime, ServeConfig};
use crate::cli::error::Error;

/// Arguments of `rowplane test`.
#[derive(Clone, Debug, Args)]
pub struct TestArgs {
    #[command(flatten)]
    serve: ServeArgs,

    /// The command that runs beside the server, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The flags that `rowplane test --help` shows; it takes all flags of `rowplane serve`.
const SHOWN: [&str; 5] = ["crds", "cluster-controllers", "data-dir", "datastore", "v"];

impl TestArgs {
    /// A flag of `rowplane serve` as `rowplane test` takes it: the environment of a test does not count, the state is in memory,
    /// the port a free one, and the directory goes with the server.
    pub fn flag(flag: Arg) -> Arg {
        let Some(name) = flag.get_long().map(str::to_owned) else { return flag };
        let flag = flag.env(None::<&'static str>);
        let flag = match name.as_str() {
            "datastore" => flag
                .default_value("memory:")
                .help("The store: sqlite:PATH, postgres://USER@HOST/DATABASE, or memory:"),
            "secure-port" => flag.default_value("0"),
            "shutdown-grace-period" => flag.default_value("0s"),
            "data-dir" => flag
                .default_value(None::<&'static str>)
                .help("The directory of certificates [default: a temporary one]"),
            _ => flag,
        };
        flag.hide(!SHOWN.contains(&name.as_str()))
    }

    /// The configuration of the server, and the command.
    pub fn into_config(self) -> Result<(ServeConfig, Vec<OsString>), Error> {
        let config = self.serve.into_config(Defaults::Own)?;
        match config.lifetime {
            Lifetime::UntilSignal => Ok((config, self.command)),
            Lifetime::UntilStdinEnds => Err(Error::Usage(
                "--exit-with-stdin is for servers: here the standard input is the command's".to_owned(),
            )),
        }
    }
}
