//! The flags about `/metrics`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use crate::cli::error::Error;
use crate::codec::yaml;
use crate::gotext::csv;
use crate::metrics::AllowedLabels;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Metrics flags")]
pub struct MetricArgs {
    /// The allowed values of a metric's label, as METRIC,LABEL=VALUE,VALUE; other values are replaced by `unexpected`.
    /// Several settings are quoted and separated by commas
    #[arg(long, value_name = "METRIC,LABEL=VALUES")]
    allow_metric_labels: Vec<String>,

    /// A YAML file with the same settings, keyed by METRIC,LABEL; used if --allow-metric-labels is not given
    #[arg(long, value_name = "FILE")]
    allow_metric_labels_manifest: Option<PathBuf>,
}

impl MetricArgs {
    pub fn into_config(self) -> Result<AllowedLabels, Error> {
        let of_flag =
            |why: String| Error::Usage(format!("invalid argument for --allow-metric-labels: {why}"));
        let mut pairs = BTreeMap::new();
        for given in &self.allow_metric_labels {
            pairs.extend(string_to_string(given).map_err(of_flag)?);
        }
        if let (true, Some(file)) = (pairs.is_empty(), self.allow_metric_labels_manifest) {
            let bad = |why: String| {
                Error::Usage(format!("--allow-metric-labels-manifest {}: {why}", file.display()))
            };
            let text = std::fs::read(&file).map_err(|error| bad(error.to_string()))?;
            let value = yaml::parse(&text).map_err(|why| bad(why.to_string()))?;
            let entries = value.as_object().ok_or_else(|| bad("no map".to_owned()))?;
            for (key, values) in entries.iter() {
                let values =
                    values.as_str().ok_or_else(|| bad(format!("the values of {key:?} are no text")))?;
                pairs.insert(key.to_string(), values.to_owned());
            }
        }
        let mut allowed = AllowedLabels::default();
        pairs.iter().try_for_each(|(key, values)| allowed.allow(key, values)).map_err(of_flag)?;
        Ok(allowed)
    }
}

/// Pairs of `key=value` as pflag's StringToString reads them: one pair as it is, several as a line of CSV.
fn string_to_string(text: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |field: &str| {
        let (key, value) =
            field.split_once('=').ok_or_else(|| format!("{field} must be formatted as key=value"))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    match text.matches('=').count() {
        0 | 1 => Ok(vec![pair(text.trim_matches('"'))?]),
        _ => match csv::Records::new(text).next() {
            Some((_, record)) => {
                record.map_err(|why| why.to_string())?.iter().map(|field| pair(field)).collect()
            }
            None => Ok(Vec::new()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_pflag_reads_them() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(string_to_string("m,l=a,b"), Ok(vec![pair("m,l", "a,b")]));
        assert_eq!(
            string_to_string("\"m,l=a,b\",\"n,l=\"\"c\""),
            Ok(vec![pair("m,l", "a,b"), pair("n,l", "\"c")])
        );
        assert_eq!(string_to_string("a=1,b=2"), Ok(vec![pair("a", "1"), pair("b", "2")]));
        for bad in ["m,l", "\"m=1\",\"n=2", "\"m=1\"x,n=2", "m,l=a,n=b"] {
            assert!(string_to_string(bad).is_err(), "{bad}");
        }
    }
}
