//! The sizes of terminals, which clients send as JSON.

use serde::{Deserialize, Serialize};

/// How much of a size that is not whole is kept, in bytes.
const LONGEST_SIZE: usize = 4096;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    #[serde(default, alias = "width")]
    width: u16,
    #[serde(default, alias = "height")]
    height: u16,
}

/// The sizes that have come, as they are passed on; `None` after what is no size.
pub fn sizes(begun: &mut Vec<u8>, bytes: &[u8]) -> Option<Vec<u8>> {
    begun.extend_from_slice(bytes);
    let mut found = Vec::new();
    let mut read = serde_json::Deserializer::from_slice(begun).into_iter::<Size>();
    let mut end = 0;
    loop {
        match read.next() {
            Some(Ok(size)) => {
                serde_json::to_writer(&mut found, &size).ok()?;
                found.push(b'\n');
                end = read.byte_offset();
            }
            Some(Err(error)) if !error.is_eof() => return None,
            Some(Err(_)) | None => break,
        }
    }
    begun.drain(..end);
    (begun.len() <= LONGEST_SIZE).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_in_pieces() {
        let mut begun = Vec::new();
        assert_eq!(sizes(&mut begun, b"{\"Width\":8").as_deref(), Some(&b""[..]));
        let found = sizes(&mut begun, b"0,\"Height\":24}{\"width\":1,\"height\":2} ").expect("sizes");
        assert_eq!(
            String::from_utf8_lossy(&found),
            "{\"Width\":80,\"Height\":24}\n{\"Width\":1,\"Height\":2}\n"
        );
        assert_eq!(sizes(&mut begun, b"{}").as_deref(), Some(&b"{\"Width\":0,\"Height\":0}\n"[..]));
        assert_eq!(sizes(&mut begun, b"x"), None);
    }
}
