//! kube-apiserver's `--token-auth-file`: CSV lines of token, user name, uid and optionally `"group1,group2"`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::gotext::csv;
use crate::user::User;

/// The users by their tokens.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    users: HashMap<String, Arc<User>>,
}

/// Why a token file cannot be used. The text never contains a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read token file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("token file {}: {source}", path.display())]
    Parse { path: PathBuf, source: ParseError },
}

/// The problem of a line; lines are counted from 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ParseError {
    pub line: usize,
    pub problem: Problem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("must have at least 3 columns (token, user name, user uid), found {0}")]
    Columns(usize),
    #[error("the token is empty")]
    EmptyToken,
    #[error("the user name is empty")]
    EmptyUser,
    #[error("the token appears a second time")]
    Duplicate,
    #[error(transparent)]
    Csv(#[from] csv::Problem),
}

impl Tokens {
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|source| Error::Parse { path: path.to_owned(), source })
    }

    /// Stricter than upstream, which only warns about empty and repeated tokens.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut users = HashMap::new();
        for (line, record) in csv::Records::new(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            let entry = record.map_err(Problem::from).and_then(entry);
            let (token, user) = entry.map_err(|problem| ParseError { line, problem })?;
            if users.insert(token, Arc::new(user)).is_some() {
                return Err(ParseError { line, problem: Problem::Duplicate });
            }
        }
        Ok(Self { users })
    }

    pub fn user(&self, token: &str) -> Option<&Arc<User>> {
        self.users.get(token)
    }
}

fn entry(record: Vec<String>) -> Result<(String, User), Problem> {
    let columns = record.len();
    let mut fields = record.into_iter();
    let (Some(token), Some(name), Some(uid)) = (fields.next(), fields.next(), fields.next()) else {
        return Err(Problem::Columns(columns));
    };
    if token.is_empty() {
        return Err(Problem::EmptyToken);
    }
    if name.is_empty() {
        return Err(Problem::EmptyUser);
    }
    let groups = fields.next().map(|list| split_groups(&list)).unwrap_or_default();
    Ok((token, User { name, uid, groups, ..User::default() }.authenticated()))
}

fn split_groups(list: &str) -> Vec<String> {
    list.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_holds_nobody() {
        assert!(Tokens::parse("").unwrap().users.is_empty());
        assert!(Tokens::parse("\n\r\n").unwrap().users.is_empty());
    }
}
