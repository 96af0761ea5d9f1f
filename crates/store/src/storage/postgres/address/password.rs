//! Passwords from files: a file with nothing but a password, and libpq's `.pgpass` by its rules.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnectOptions;

use super::Environment;

/// Directories in which Debian's and PostgreSQL's own builds look for a socket; `.pgpass` calls them `localhost`.
pub const USUAL_SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Reads a file that contains nothing but a password, such as a mounted secret.
pub fn of_file(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let password = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    if password.is_empty() || password.contains(['\n', '\0']) {
        return Err(format!("{} does not hold a password on one line", path.display()));
    }
    Ok(password.to_owned())
}

/// Looks the password up in a passfile: the one named in the URL, in `PGPASSFILE`, or in the home directory.
pub fn of_passfile(
    named: Option<PathBuf>,
    host: &str,
    options: &PgConnectOptions,
    environment: &Environment<'_>,
    warnings: &mut Vec<String>,
) -> Option<String> {
    let path = named
        .or_else(|| (environment.variable)("PGPASSFILE").map(PathBuf::from))
        .or_else(|| environment.home.as_ref().map(|home| home.join(".pgpass")))?;
    let found = std::fs::metadata(&path).ok()?;
    if !found.is_file() || found.mode() & 0o077 != 0 {
        warnings.push(format!(
            "the password file {} is ignored: it has to be a file that nobody else has access to, of mode 0600 or less",
            path.display()
        ));
        return None;
    }
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            warnings.push(format!("the password file {} is ignored: {error}", path.display()));
            return None;
        }
    };
    let host = if USUAL_SOCKETS.contains(&host) { "localhost" } else { host.trim_matches(['[', ']']) };
    let user = options.get_username();
    let port = options.get_port().to_string();
    look_up(&text, [host, &port, options.get_database().unwrap_or(user), user])
}

/// The password in the first line that matches host, port, database and user.
fn look_up(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.trim_end_matches('\r')).find_map(|line| {
        let mut rest = line;
        for wanted in wanted {
            let (field, after) = field(rest)?;
            if field != "*" && unescape(field) != wanted {
                return None;
            }
            rest = after;
        }
        Some(unescape(rest)).filter(|password| !password.is_empty())
    })
}

/// Splits off the text before the first colon without a backslash before it.
fn field(line: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = line.find(|letter| {
        let ends = letter == ':' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    })?;
    Some((&line[..end], &line[end + 1..]))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# nobody:*:*:*:comment\n\
        garbage\n\
        db:5433:*:me:by-port\n\
        db:5432:app:me:a\\:b\\\\c:d\n\
        we\\:ird:*:*:*:colon\n\
        *:*:*:*:any\r\n";

    #[test]
    fn the_first_line_that_fits_is_taken() {
        for (wanted, password) in [
            (["db", "5432", "app", "me"], "a:b\\c:d"),
            (["db", "5433", "app", "me"], "by-port"),
            (["we:ird", "1", "x", "y"], "colon"),
            (["db", "5432", "other", "me"], "any"),
        ] {
            assert_eq!(look_up(FILE, wanted).as_deref(), Some(password), "{wanted:?}");
        }
        assert_eq!(look_up("db:5432:app:me:secret", ["db", "5432", "app", "you"]), None);
    }
}
