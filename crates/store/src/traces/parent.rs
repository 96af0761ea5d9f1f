//! The trace that a client names in its request.

use data_encoding::HEXLOWER;
use http::HeaderValue;

/// A span of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    pub is_sampled: bool,
}

impl Parent {
    /// Reads a `traceparent` of W3C Trace Context; later versions may have more at the end.
    pub fn parse(header: &HeaderValue) -> Option<Self> {
        let text = header.to_str().ok()?;
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = number(version)?;
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]) = (number(trace)?, number(span)?, number(flags)?);
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

fn number<const N: usize>(text: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_parents() {
        let parse = |text: &str| Parent::parse(&HeaderValue::from_str(text).expect("a header"));
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let sampled = parse(&format!("00-{trace}-{span}-01")).expect("a parent");
        assert_eq!((sampled.trace[0], sampled.span[7], sampled.is_sampled), (0x0a, 0x31, true));
        assert!(!parse(&format!("00-{trace}-{span}-00")).expect("a parent").is_sampled);
        assert!(parse(&format!("01-{trace}-{span}-03-more")).expect("a later version").is_sampled);
        for wrong in [
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{span}-1"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}"),
            String::new(),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }
}
