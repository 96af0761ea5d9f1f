//! The flags about SQL.

use std::time::Duration;

use clap::{ArgAction, Args};

use super::positive_duration;
use crate::http::limits::SqlConfig;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "SQL flags")]
pub struct SqlArgs {
    /// Answers SELECT statements over what is stored, at /rowplane/sql
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    sql: bool,

    /// The longest time of a statement, until its last row is sent
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive_duration)]
    sql_timeout: Duration,

    /// How many statements run at a time. 16 more wait, and others are answered with 429
    #[arg(long, value_name = "STATEMENTS", default_value_t = 2)]
    sql_max_concurrent: usize,
}

impl SqlArgs {
    pub fn into_config(self) -> SqlConfig {
        SqlConfig {
            is_on: self.sql,
            timeout: self.sql_timeout,
            concurrent: self.sql_max_concurrent.clamp(1, 1_000),
        }
    }
}
