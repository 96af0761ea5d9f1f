//! Tests of `options::continue_token`.

use rowplane_api::error::Error;
use rowplane_api::options::continue_token::ContinueToken;
use rowplane_api::options::continue_token::LastKey;
use rowplane_api::options::continue_token::PageAt;
use rowplane_api::options::continue_token::Scope;
use rowplane_api::options::continue_token::TokenKey;
use rowplane_api::options::continue_token::TokenKeys;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::names::GroupResource;

fn key(id: u32) -> TokenKey {
    TokenKey { id, secret: vec![id as u8; 32] }
}

fn token() -> ContinueToken {
    let after = LastKey { namespace: "t".into(), name: "a".into() };
    ContinueToken { at: PageAt::Revision(Revision(123)), after, remaining: Some(3) }
}

#[test]
fn survives_rotation_and_keeps_its_content() {
    let pods = GroupResource::new("", "pods");
    let scope = Scope { resource: &pods, namespace: Some("t"), door: None, order: "" };
    let old = TokenKeys::new(key(1), vec![]);
    let rotated = TokenKeys::new(key(2), vec![key(1)]);
    let latest = ContinueToken { at: PageAt::Latest, remaining: None, ..token() };
    for token in [token(), latest] {
        let text = old.encode(&token, scope).unwrap();
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')));
        assert_eq!(rotated.decode(&text, scope).unwrap(), token);
    }
    let gone = TokenKeys::new(key(3), vec![]);
    let expired = gone.decode(&old.encode(&token(), scope).unwrap(), scope).unwrap_err();
    assert_eq!(expired.to_string(), Error::expired_page(None).to_string());
}

#[test]
fn forged_cut_and_foreign_tokens_are_refused() {
    let keys = TokenKeys::new(key(1), vec![]);
    let (pods, nodes) = (GroupResource::new("", "pods"), GroupResource::new("", "nodes"));
    let scope = Scope { resource: &pods, namespace: None, door: None, order: "" };
    let text = keys.encode(&token(), scope).unwrap();
    let mut bad = vec![(String::new(), scope), ("garbage".into(), scope), ("=".into(), scope)];
    bad.extend((0..text.len()).map(|i| (text[..i].to_owned(), scope)));
    for i in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[i] = if bytes[i] == b'A' { b'B' } else { b'A' };
        bad.push((String::from_utf8(bytes).unwrap(), scope));
    }
    bad.push((text.clone(), Scope { resource: &nodes, namespace: None, door: None, order: "" }));
    bad.push((text.clone(), Scope { resource: &pods, namespace: Some(""), door: None, order: "" }));
    bad.push((text.clone(), Scope { resource: &pods, namespace: Some("t"), door: None, order: "" }));
    for (text, scope) in bad {
        match keys.decode(&text, scope) {
            Err(Error::BadRequest(message)) if keys.may_read(&text) => {
                let text = "invalid continue token: continue key is not valid: ";
                assert!(message.starts_with(text), "{message}");
            }
            // It names another key.
            Err(Error::Expired { .. }) if !keys.may_read(&text) => {}
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(keys.decode(&text, scope).unwrap(), token());
}
