//! ECDSA on the curve P-521 (ES512), which `ring` does not have.

use p521::ecdsa::signature::{Signer as _, Verifier as _};
use p521::ecdsa::{Signature, SigningKey, VerifyingKey};

use super::der;

/// The length of a coordinate, and of a private key.
pub const SIZE: usize = 66;
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const OCTET_STRING: u8 = 4;

/// A private key.
pub struct P521Key(SigningKey);

impl P521Key {
    /// Of an `ECPrivateKey` (SEC 1).
    pub fn of_sec1(bytes: &[u8]) -> Option<Self> {
        let (content, _) = der::take(SEQUENCE, bytes)?;
        let (_version, rest) = der::take(INTEGER, content)?;
        let (number, _) = der::take(OCTET_STRING, rest)?;
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let mut padded = [0; SIZE];
        padded.get_mut(SIZE.checked_sub(number.len() - zeros)?..)?.copy_from_slice(&number[zeros..]);
        SigningKey::from_slice(&padded).ok().map(Self)
    }

    /// Of a `PrivateKeyInfo` (PKCS#8), which wraps the other form.
    pub fn of_pkcs8(bytes: &[u8]) -> Option<Self> {
        let (content, _) = der::take(SEQUENCE, bytes)?;
        let (_version, rest) = der::take(INTEGER, content)?;
        let (_algorithm, rest) = der::take(SEQUENCE, rest)?;
        let (key, _) = der::take(OCTET_STRING, rest)?;
        Self::of_sec1(key)
    }

    /// The public key as a point that is not compressed.
    pub fn point(&self) -> Vec<u8> {
        self.0.verifying_key().to_sec1_point(false).as_bytes().to_vec()
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: Signature = self.0.sign(message);
        signature.to_bytes().to_vec()
    }
}

pub fn verify(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (key, signature) = (VerifyingKey::from_sec1_bytes(point), Signature::from_slice(signature));
    key.ok().zip(signature.ok()).is_some_and(|(key, signature)| key.verify(message, &signature).is_ok())
}
