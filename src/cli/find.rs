//! `rowplane find`: objects of all kinds in whose strings a text is.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::error::Error;
use super::output::print;
use super::past::encode;
use super::past::history::{Format, text};
use super::past::kinds;
use super::past::session::{ServerArgs, Session};
use super::table::aligned;
use crate::codec::yaml;

/// Arguments of `rowplane find`.
#[derive(Clone, Debug, Args)]
pub struct FindArgs {
    /// The text, in a name, a label, an annotation or another string; ASCII letters in any case
    #[arg(value_name = "TEXT")]
    text: String,
    /// Only these kinds, as deployments.apps,secrets
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kinds: Vec<String>,
    /// A time in the past: a duration as -15m, or a time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    at: Option<String>,
    /// The most objects to show
    #[arg(long, value_name = "OBJECTS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// The format: table, json, yaml, or name
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_enum,
        default_value = "table",
        hide_possible_values = true
    )]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

/// Searches in all namespaces, unless the command line names one.
pub async fn run(arguments: FindArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let door = match &arguments.at {
        Some(when) => session.at(when).await?.door,
        None => String::new(),
    };
    let mut path = format!("{door}/ask/search?q={}&limit={}", encode(&arguments.text), arguments.limit);
    if let Some(namespace) = &arguments.server.namespace {
        let _ = write!(path, "&namespace={}", encode(namespace));
    }
    if !arguments.kinds.is_empty() {
        let known = kinds::load(&session, &door).await?;
        let named: Result<Vec<String>, Error> =
            arguments.kinds.iter().map(|name| Ok(kinds::find(&known, name)?.resource())).collect();
        let _ = write!(path, "&resources={}", encode(&named?.join(",")));
    }
    let table = session.get(&path).await?;
    let rows: Vec<[String; 3]> = table["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| [0, 1, 2].map(|column| text(&row["cells"][column])))
        .collect();
    let found = match arguments.output {
        Format::Json => serde_json::to_string_pretty(&table).unwrap_or_default() + "\n",
        Format::Yaml => yaml::write(&table),
        Format::Name => rows.iter().map(|[_, resource, name]| format!("{resource}/{name}\n")).collect(),
        Format::Table => {
            let head = ["NAMESPACE", "RESOURCE", "NAME"].map(str::to_owned);
            aligned(&[head].into_iter().chain(rows.iter().cloned()).collect::<Vec<_>>())
        }
    };
    print(&found)?;
    if let Some(rest) = table["metadata"]["remainingItemCount"].as_u64() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "and {rest} more; --limit shows more of them");
    }
    // As grep has it.
    Ok(if rows.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
