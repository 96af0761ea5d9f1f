//! Redirects of webhooks and issuers. They are followed within a server only: what answers for a hook must not make this server
//! ask others in its place (CVE-2020-8561).

use url::Url;

use super::link::Response;

/// Redirects that are followed one after the other, as Go follows them.
pub const MOST: usize = 10;
/// Why no more of them are followed.
pub const STOPPED: &str = "stopped after 10 redirects";

/// The target of an answer whose status is one of these: the path and the query at the same scheme, host and port as
/// `from`.
pub fn target(response: &Response, statuses: &[u16], from: &str) -> Result<Option<String>, String> {
    let location = response.location.as_deref().filter(|_| statuses.contains(&response.status));
    let Some(location) = location else { return Ok(None) };
    let from = Url::parse(from).map_err(|error| error.to_string())?;
    let to = from
        .join(location)
        .map_err(|error| format!("failed to parse Location header {location:?}: {error}"))?;
    let place =
        |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    if place(&to) != place(&from) {
        return Err(format!("the redirect to \"{to}\" leads to another server, so it is not followed"));
    }
    Ok(Some(to[url::Position::BeforePath..url::Position::AfterQuery].to_owned()))
}
