//! Parses image references as far as is needed to know whether one means the newest image (`distribution/reference`).

/// Whether the reference is valid and its tag is `latest`, explicitly or by default.
pub(super) fn is_latest(reference: &str) -> bool {
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    let valid = is_name(name) && digest.is_none_or(is_digest) && !is_identifier(reference);
    valid
        && match tag {
            Some(tag) => tag == "latest",
            None => digest.is_none(),
        }
}

/// Whether the text is a digest without a name, which is not accepted as a name.
fn is_identifier(reference: &str) -> bool {
    reference.len() == 64 && reference.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_name(name: &str) -> bool {
    let (domain, path) = match name.split_once('/') {
        Some((first, path)) if is_like_a_domain(first) => (Some(first), path),
        _ => (None, name),
    };
    domain.is_none_or(is_domain) && path.split('/').all(is_component) && name.len() <= 255
}

fn is_like_a_domain(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let bracketed = |rest: &str| {
        let (address, port) = rest.split_once(']')?;
        let fits =
            address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':') && !address.is_empty();
        Some(fits && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)))
    };
    if let Some(rest) = domain.strip_prefix('[') {
        return bracketed(rest).unwrap_or(false);
    }
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    port.is_none_or(is_port) && host.split('.').all(is_label)
}

fn is_port(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_label(label: &str) -> bool {
    let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    !label.is_empty() && inner && !label.starts_with('-') && !label.ends_with('-')
}

/// Whether the text is a path component: words of small letters and digits, separated by a dot, by one or two
/// underscores, or by dashes.
fn is_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut separators = component.split(is_word).filter(|text| !text.is_empty());
    let ends = [component.chars().next(), component.chars().next_back()];
    ends.into_iter().all(|end| end.is_some_and(is_word))
        && separators.all(|text| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_meant_by_its_name_or_by_none() {
        let digest = format!("nginx@sha256:{}", "a".repeat(64));
        let tagged = format!("nginx:latest@sha256:{}", "a".repeat(64));
        let latest = [
            "nginx",
            "nginx:latest",
            "a.b:5000/c/d",
            "localhost/c",
            "a/b_c/d__e/f---g",
            "[::1]:5/a",
            &tagged,
        ];
        assert_eq!(latest.into_iter().find(|image| !is_latest(image)), None);
        let id = "a".repeat(64);
        let others =
            ["", "nginx:1", "Nginx", "a//b", "a___b", "-a", "a:5000/c:v1", "nginx:latest@x", &digest, &id];
        assert_eq!(others.into_iter().find(|image| is_latest(image)), None);
    }
}
