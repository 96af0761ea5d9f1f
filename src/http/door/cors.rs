//! Rights of pages of other origins (`--cors-allowed-origins`): browsers are told them on every answer, and before they send
//! a credential.

use std::fmt;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::regexp::Regexp;

const HELP: &str = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression to support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by anchoring to the end with '$' or including the ':' port separator suffix. Examples of valid expressions are '//example\\.com(:|$)' and '^https://example\\.com(:|$)'";
/// The headers that are told beside the origin.
const TOLD: [(HeaderName, &str); 4] = [
    (header::ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
    ),
    (header::ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
    (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
];

/// The origins that are allowed.
#[derive(Clone)]
pub struct Cors(Vec<Regexp>);

impl fmt::Debug for Cors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cors({} origins)", self.0.len())
    }
}

impl Cors {
    /// The errors are upstream's.
    pub fn new<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let wrong = |why: String| {
            format!("--cors-allowed-origins has an invalid regular expression: {why}, help: {HELP}")
        };
        let origin = |expression: &'a str| {
            if expression.is_empty() {
                return Err(format!("empty value in --cors-allowed-origins, help: {HELP}"));
            }
            let compiled = Regexp::compile(expression).map_err(|error| wrong(error.to_string()))?;
            let has = |marks: [&str; 2]| marks.iter().any(|mark| expression.contains(mark));
            match has(["^", "//"]) && has(["$", ":"]) {
                true => Ok(compiled),
                false => Err(wrong(
                    "regular expression does not pin to start/end of host in the origin header".to_owned(),
                )),
            }
        };
        expressions.into_iter().map(origin).collect::<Result<_, _>>().map(Self)
    }

    /// The origin of a request, if it is allowed.
    pub fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
        self.0.iter().any(|allowed| allowed.is_match(text)).then(|| origin.clone())
    }
}

/// The answer to a browser that asks before it sends the request itself.
pub fn allowed() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Lets pages of the origin read the answer.
pub fn tell(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in TOLD {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
