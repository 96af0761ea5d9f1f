//! Tests of `auth::jwt`.

use rowplane_access::auth::jwt::Audience;
use rowplane_access::auth::jwt::Compact;
use rowplane_access::auth::jwt::Date;
use rowplane_access::auth::jwt::claimed_issuer;
use rowplane_access::auth::jwt::decode;
use rowplane_access::auth::jwt::encode;
use rowplane_access::auth::jwt::keys::KeyError;
use rowplane_access::auth::jwt::keys::PublicKey;
use rowplane_access::auth::jwt::keys::SigningKey;
use rowplane_values::tree::json;
use serde::Deserialize;
use serde_json::Value;

/// Keys that openssl has made, in the forms in which people keep them.
const RSA_PKCS1: &str = include_str!("../../../../testdata/jwt/rsa-pkcs1.pem");
const RSA_PKCS8: &str = include_str!("../../../../testdata/jwt/rsa-pkcs8.pem");
const RSA_PUBLIC: &str = include_str!("../../../../testdata/jwt/rsa-public.pem");
const P256_SEC1: &str = include_str!("../../../../testdata/jwt/p256-sec1.pem");
const P256_PKCS8: &str = include_str!("../../../../testdata/jwt/p256-pkcs8.pem");
const P384_SEC1: &str = include_str!("../../../../testdata/jwt/p384-sec1.pem");
const P521_PKCS8: &str = include_str!("../../../../testdata/jwt/p521-pkcs8.pem");
/// A token that Go has signed with this key.
const P521_TOKEN: &str = include_str!("../../../../testdata/jwt/p521.token");
const P521: &str = include_str!("../../../../testdata/jwt/p521.pem");

#[test]
fn what_a_key_signs_it_verifies_and_no_other_does() {
    let keys = [RSA_PKCS1, P256_SEC1, P384_SEC1, P521].map(|pem| SigningKey::of_pem(pem.as_bytes()).unwrap());
    for (at, key) in keys.iter().enumerate() {
        let token = key.sign(&json!({"iss": "me", "sub": "x"})).unwrap();
        let parsed = Compact::parse(&token).unwrap();
        assert_eq!(parsed.header.kid, key.public.id);
        assert_eq!(parsed.header.alg, ["RS256", "ES256", "ES384", "ES512"][at]);
        assert_eq!(claimed_issuer(&token).as_deref(), Some("me"));
        assert_eq!(parsed.claims::<Value>().unwrap()["sub"], "x");
        for (other, verifier) in keys.iter().enumerate() {
            assert_eq!(parsed.verify([&verifier.public].into_iter()).is_ok(), at == other);
        }
        assert!(parsed.verify(keys.iter().map(|key| &key.public)).is_ok());
    }
}

#[test]
fn changed_tokens_are_refused() {
    let key = SigningKey::of_pem(P256_PKCS8.as_bytes()).unwrap();
    let token = key.sign(&json!({"iss": "me", "admin": false})).unwrap();
    let (head, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let forged = format!("{header}.{}.{signature}", encode(br#"{"iss":"me","admin":true}"#));
    let unsigned = format!("{}.{}.", encode(br#"{"alg":"none"}"#), encode(br#"{"iss":"me"}"#));
    let cut = format!("{head}.{}", &signature[..signature.len() - 4]);
    for token in [forged, unsigned, cut, format!("{head}.")] {
        let parsed = Compact::parse(&token);
        assert!(parsed.is_none_or(|parsed| parsed.verify([&key.public].into_iter()).is_err()), "{token}");
    }
    for text in ["", "a", "a.b", "a.b.c", "a.b.c.d", "..", &format!("{token}.x"), &token.replace('.', ",")] {
        assert!(Compact::parse(text).is_none(), "{text}");
    }
}

/// The ids are what Go's `keyIDFromPublicKey` makes of the keys.
#[test]
fn a_key_has_one_id_in_all_its_forms() {
    let id = |pem: &str| PublicKey::of_pem(pem.as_bytes()).unwrap()[0].id.clone();
    let ids: Vec<&str> = include_str!("../../../../testdata/jwt/ids").lines().collect();
    assert_eq!([RSA_PKCS1, P256_SEC1, P384_SEC1, P521].map(id), ids[..]);
    assert_eq!([RSA_PKCS8, RSA_PUBLIC, P256_PKCS8, P521_PKCS8].map(id), [ids[0], ids[0], ids[1], ids[3]]);
    for pem in [RSA_PKCS8, P256_SEC1, P384_SEC1, P521] {
        let public = &PublicKey::of_pem(pem.as_bytes()).unwrap()[0];
        assert_eq!(&PublicKey::of_pem(public.to_pem().as_bytes()).unwrap()[0], public);
    }
    let both = [RSA_PUBLIC, P256_SEC1].concat();
    assert_eq!(PublicKey::of_pem(both.as_bytes()).unwrap().len(), 2);
}

#[test]
fn keys_come_back_out_of_key_sets() {
    let decode = |jwk: &rowplane_values::tree::Value, name: &str| {
        rowplane_access::auth::jwt::decode(jwk[name].as_str().unwrap()).unwrap()
    };
    let rsa = PublicKey::of_pem(RSA_PUBLIC.as_bytes()).unwrap().remove(0);
    let jwk = rsa.to_jwk();
    assert_eq!((&jwk["kty"], &jwk["alg"], &jwk["e"]), (&json!("RSA"), &json!("RS256"), &json!("AQAB")));
    assert_eq!(PublicKey::of_rsa(&decode(&jwk, "n"), &decode(&jwk, "e")), Some(rsa));
    for (pem, curve) in [(P256_PKCS8, "P-256"), (P384_SEC1, "P-384"), (P521, "P-521")] {
        let key = PublicKey::of_pem(pem.as_bytes()).unwrap().remove(0);
        let jwk = key.to_jwk();
        assert_eq!(jwk["crv"], curve);
        assert_eq!(PublicKey::of_point(curve, &decode(&jwk, "x"), &decode(&jwk, "y")), Some(key));
    }
}

#[test]
fn files_without_a_key_are_refused() {
    assert_eq!(SigningKey::of_pem(RSA_PUBLIC.as_bytes()).unwrap_err(), KeyError::NoPrivateKey);
    assert_eq!(PublicKey::of_pem(b"nothing"), Err(KeyError::NoPublicKey));
    let cut = pem::encode(&pem::Pem::new("EC PRIVATE KEY", &pem::parse(P521).unwrap().contents()[..40]));
    assert_eq!(SigningKey::of_pem(cut.as_bytes()).unwrap_err(), KeyError::NoPrivateKey);
}

#[test]
fn tokens_of_another_library_are_verified() {
    let key = PublicKey::of_pem(P521.as_bytes()).unwrap().remove(0);
    let token = P521_TOKEN.trim();
    let parsed = Compact::parse(token).unwrap();
    assert_eq!((&*parsed.header.alg, &parsed.header.kid), ("ES512", &key.id));
    assert!(parsed.verify([&key].into_iter()).is_ok());
    let (head, _) = token.rsplit_once('.').unwrap();
    let zeros = format!("{head}.{}", encode(&[0; 132]));
    assert!(Compact::parse(&zeros).unwrap().verify([&key].into_iter()).is_err());
}

/// Tokens of RSA keys of 768 to 4096 bits that Go has signed, and what go-jose says of them (`tests/upstream/tokens`).
#[test]
fn keys_of_all_sizes_verify_as_upstream() {
    let packed = &include_bytes!("../../../../testdata/jwt/rsa-tokens.jsonl.gz")[..];
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut lines).unwrap();
    let mut verified = 0;
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let token = Compact::parse(case["token"].as_str().unwrap()).unwrap();
        let of_file = PublicKey::of_pem(case["pem"].as_str().unwrap().as_bytes()).unwrap().remove(0);
        let number = |name: &str| decode(case["jwk"][name].as_str().unwrap()).unwrap();
        let of_set = PublicKey::of_rsa(&number("n"), &number("e")).unwrap();
        let found = [of_file, of_set].map(|key| token.verify([&key].into_iter()).is_ok());
        let expected = ["ofFile", "ofSet"].map(|name| case[name].as_bool().unwrap());
        assert_eq!(found, expected, "{} bits, {}", case["bits"], token.header.alg);
        verified += usize::from(found == [true, true]);
    }
    assert!(verified > 90, "{verified}");
}

#[test]
fn a_short_private_key_is_refused_by_its_length() {
    let pem = include_str!("../../../../testdata/jwt/rsa-1024.pem");
    let why = SigningKey::of_pem(pem.as_bytes()).unwrap_err();
    assert_eq!(why, KeyError::Size { bits: 1024 });
    assert_eq!(PublicKey::of_pem(pem.as_bytes()).unwrap()[0].algorithm(), "RS256");
}

#[test]
fn audiences_and_dates_have_several_forms() {
    #[derive(Deserialize)]
    struct Claims {
        #[serde(default)]
        aud: Audience,
        exp: Date,
    }
    let read = |text: &str| serde_json::from_str::<Claims>(text).unwrap();
    assert_eq!(read(r#"{"aud":"a","exp":7}"#).aud.0, ["a"]);
    assert_eq!(read(r#"{"aud":["a","b"],"exp":7.9}"#).aud.0, ["a", "b"]);
    let none = read(r#"{"exp":1e300}"#);
    assert_eq!((none.aud.0.len(), none.exp), (0, Date(i64::MAX)));
}
