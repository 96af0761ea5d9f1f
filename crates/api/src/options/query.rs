//! The query string, decoded as Go's `url.ParseQuery` does it.

use crate::error::Error;
use crate::gotext;

/// Parameters in the order of the URL. Malformed pairs are left out, as upstream does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// `text` is the raw query without the question mark.
    pub fn parse(text: &str) -> Self {
        let pairs =
            text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode(key)?, decode(value)?))
            });
        Self { pairs: pairs.collect() }
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; an absent one is the same as an empty one.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean parameter: anything but `0` and `false` means true, the empty string too
    /// (apimachinery `Convert_Slice_string_To_bool`).
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// An integer parameter, or 400 with Go's text.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Error> {
        self.get(name).map(gotext::parse_int).transpose().map_err(Error::BadRequest)
    }
}

/// Decodes escapes; `None` if one is malformed. Bytes that are not UTF-8 become U+FFFD.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
