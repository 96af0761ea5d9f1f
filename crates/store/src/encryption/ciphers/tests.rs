use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::*;

/// Values that upstream has sealed, with the bytes that follow the prefix and the name of the key.
fn values() -> Vec<(Value, Vec<u8>)> {
    let text = include_str!("../../../../../testdata/encryption/values.json");
    let Value::Array(values) = serde_json::from_str(text).expect("JSON") else { panic!("no list") };
    let sealed = |value: &Value| {
        let stored = STANDARD.decode(value["stored"].as_str().expect("base64")).expect("base64");
        let colons = stored.iter().enumerate().filter(|(_, byte)| **byte == b':');
        let (name, _) = colons.map(|(at, _)| (at, ())).nth(4).expect("a prefix");
        stored[name + 1..].to_vec()
    };
    values.into_iter().map(|value| (value.clone(), sealed(&value))).collect()
}

fn cipher(value: &Value) -> Option<Cipher> {
    let kind = match value["provider"].as_str()? {
        "aescbc" => KeyKind::AesCbc,
        "aesgcm" => KeyKind::AesGcm,
        "secretbox" => KeyKind::Secretbox,
        _ => return None,
    };
    let key = STANDARD.decode(value["secret"].as_str()?).expect("base64");
    Some(Cipher::new(kind, &key).expect("a key of a good length"))
}

/// Seals with the random bytes of an already sealed value.
fn seal_again(cipher: &Cipher, sealed: &[u8], plain: &[u8], row: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    let done = match cipher {
        Cipher::Cbc(aes) => aes.seal(*sealed.first_chunk().expect("an IV"), plain, &mut out),
        Cipher::Gcm(gcm) => gcm.seal(*sealed.first_chunk().expect("a nonce"), plain, row, &mut out),
        Cipher::Secretbox(key) => seal_box(key, *sealed.first_chunk().expect("a nonce"), plain, &mut out),
    };
    done.expect("sealed");
    out
}

#[test]
fn what_upstream_sealed_is_opened_and_sealed_alike() {
    let mut seen = 0;
    for (value, sealed) in values() {
        let Some(cipher) = cipher(&value) else { continue };
        let text = |name: &str| value[name].as_str().expect("text").as_bytes();
        assert_eq!(cipher.open(&sealed, text("path")).as_deref(), Ok(text("plain")), "{value}");
        assert_eq!(seal_again(&cipher, &sealed, text("plain"), text("path")), sealed, "{value}");
        seen += 1;
    }
    assert_eq!(seen, 70);
}

#[test]
fn what_was_sealed_is_opened_and_nothing_else() {
    for (kind, length) in [(KeyKind::AesCbc, 16), (KeyKind::AesGcm, 24), (KeyKind::Secretbox, 32)] {
        let cipher = Cipher::new(kind, &vec![7; length]).expect("a key");
        let other = Cipher::new(kind, &vec![8; length]).expect("a key");
        assert!(Cipher::new(kind, &vec![7; length + 1]).is_none());
        for plain in [&b""[..], b"a", &[9; 16], &[9; 100]] {
            let mut sealed = BytesMut::new();
            cipher.seal(plain, b"row", &mut sealed).expect("sealed");
            assert!(sealed.len() <= cipher.sealed_len(plain.len()));
            assert_eq!(cipher.open(&sealed, b"row").as_deref(), Ok(plain));
            assert_eq!(cipher.open(&sealed, b"other").is_ok(), kind != KeyKind::AesGcm);
            assert_ne!(other.open(&sealed, b"row").as_deref(), Ok(plain));
            for cut in 0..sealed.len() {
                assert_ne!(
                    cipher.open(&sealed[..cut], b"row").as_deref(),
                    Ok(plain),
                    "{kind:?} cut at {cut}"
                );
            }
            if kind != KeyKind::AesCbc {
                for at in 0..sealed.len() {
                    let mut damaged = sealed.clone();
                    damaged[at] ^= 1;
                    assert!(cipher.open(&damaged, b"row").is_err(), "{kind:?} byte {at}");
                }
            }
        }
    }
}

#[test]
fn upstreams_texts() {
    let why = |kind, sealed: &[u8]| {
        let length = if kind == KeyKind::AesCbc { 16 } else { 32 };
        Cipher::new(kind, &vec![7; length])
            .expect("a key")
            .open(sealed, b"")
            .expect_err("no value")
            .to_string()
    };
    assert_eq!(why(KeyKind::AesCbc, &[0; 15]), "the stored data was shorter than the required size");
    assert_eq!(why(KeyKind::AesCbc, &[0; 17]), "the stored data is not a multiple of the block size");
    assert_eq!(why(KeyKind::AesCbc, &[0; 16]), "invalid PKCS7 data (empty or not padded)");
    assert_eq!(why(KeyKind::AesGcm, &[0; 11]), "the stored data was shorter than the required size");
    assert_eq!(why(KeyKind::AesGcm, &[0; 12]), "cipher: message authentication failed");
    assert_eq!(why(KeyKind::Secretbox, &[0; 39]), "the stored data was shorter than the required size");
    assert_eq!(why(KeyKind::Secretbox, &[0; 40]), "output array was not large enough for encryption");
    let seed = Seed::new(&[0; 31]).map(drop).expect_err("short");
    assert_eq!(seed.to_string(), "invalid seed length 31 used for key generation");
}

/// The service of the program that made the data wraps a seed by turning its bytes round.
#[test]
fn upstreams_seeds() {
    use crate::encryption::kms::opened_with;

    let mut seen = 0;
    for (value, sealed) in values() {
        if value["provider"] != "kms" {
            continue;
        }
        let text = |name: &str| value[name].as_str().expect("text").as_bytes();
        let unwrap = |wrapped: &[u8]| wrapped.iter().rev().copied().collect::<Vec<u8>>();
        let (seed, data) = opened_with(&sealed, unwrap);
        assert_eq!(seed.open(&data, text("path")).as_deref(), Ok(text("plain")));
        assert!(seed.open(&data, b"other").is_err());
        let (info, rest) = data.split_first_chunk().expect("info");
        let mut again = BytesMut::new();
        let nonce = *rest.first_chunk().expect("a nonce");
        seed.seal_with(*info, nonce, text("plain"), text("path"), &mut again).expect("sealed");
        assert_eq!(again, data);
        seen += 1;
    }
    assert_eq!(seen, 10);
}
