//! The ciphers of stored values, byte for byte as upstream has them.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::array::typenum::U12;
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce, Tag};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use bytes::{BufMut as _, BytesMut};
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, StreamCipher};
use hmac::{Hmac, Mac as _};
use poly1305::Poly1305;
use salsa20::XSalsa20;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::configuration::KeyKind;

const BLOCK: usize = 16;
const TAG: usize = 16;
const GCM_NONCE: usize = 12;
const BOX_NONCE: usize = 24;
/// The bytes of a stream of Salsa20 that are the key of Poly1305; the message is encrypted with what follows them.
const POLY_KEY: usize = 32;
/// The length of the random bytes from which a value's key is derived, beside the seed.
const INFO: usize = 32;

/// Why a value cannot be sealed or opened, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    #[error("the stored data was shorter than the required size")]
    Short,
    #[error("the stored data is not a multiple of the block size")]
    Blocks,
    #[error("invalid PKCS7 data (empty or not padded)")]
    NotPadded,
    #[error("invalid padding on input")]
    Padding,
    #[error("cipher: message authentication failed")]
    Forged,
    #[error("output array was not large enough for encryption")]
    ForgedBox,
    #[error("invalid seed length {0} used for key generation")]
    Seed(usize),
    #[error("unable to read sufficient random bytes")]
    Random,
}

/// A cipher with its key.
pub enum Cipher {
    Cbc(Box<Aes>),
    Gcm(Gcm),
    Secretbox(Box<[u8; 32]>),
}

/// AES with a key of any length.
pub enum Aes {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

/// AES-GCM with a key of any length.
pub enum Gcm {
    Aes128(Box<Aes128Gcm>),
    Aes192(Box<AesGcm<Aes192, U12>>),
    Aes256(Box<Aes256Gcm>),
}

/// Bytes that nobody can foresee.
pub fn random<const N: usize>() -> Result<[u8; N], CipherError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| CipherError::Random)?;
    Ok(bytes)
}

impl Cipher {
    /// `None` if the key has not one of the cipher's lengths.
    pub fn new(kind: KeyKind, key: &[u8]) -> Option<Self> {
        Some(match kind {
            KeyKind::AesCbc => Self::Cbc(Box::new(Aes::new(key)?)),
            KeyKind::AesGcm => Self::Gcm(Gcm::new(key)?),
            KeyKind::Secretbox => Self::Secretbox(Box::new(key.try_into().ok()?)),
        })
    }

    /// The length of a sealed value, or a few bytes more.
    pub fn sealed_len(&self, plain: usize) -> usize {
        plain
            + match self {
                Self::Cbc(_) => 2 * BLOCK,
                Self::Gcm(_) => GCM_NONCE + TAG,
                Self::Secretbox(_) => BOX_NONCE + TAG,
            }
    }

    /// Appends the sealed value. Only AES-GCM authenticates the row.
    pub fn seal(&self, plain: &[u8], row: &[u8], out: &mut BytesMut) -> Result<(), CipherError> {
        match self {
            Self::Cbc(aes) => aes.seal(random()?, plain, out),
            Self::Gcm(gcm) => gcm.seal(random()?, plain, row, out),
            Self::Secretbox(key) => seal_box(key, random()?, plain, out),
        }
    }

    pub fn open(&self, sealed: &[u8], row: &[u8]) -> Result<Vec<u8>, CipherError> {
        match self {
            Self::Cbc(aes) => aes.open(sealed),
            Self::Gcm(gcm) => gcm.open(sealed, row),
            Self::Secretbox(key) => open_box(key, sealed),
        }
    }
}

impl Aes {
    fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(Aes128::new_from_slice(key).ok()?),
            24 => Self::Aes192(Aes192::new_from_slice(key).ok()?),
            32 => Self::Aes256(Aes256::new_from_slice(key).ok()?),
            _ => return None,
        })
    }

    /// The initialization vector, and then the blocks, of which the last one is filled up as PKCS #7 has it.
    fn seal(&self, iv: [u8; BLOCK], plain: &[u8], out: &mut BytesMut) -> Result<(), CipherError> {
        out.put_slice(&iv);
        let start = out.len();
        let padding = BLOCK - plain.len() % BLOCK;
        out.put_slice(plain);
        out.put_bytes(padding as u8, padding);
        let (length, blocks, iv) = (plain.len() + padding, &mut out[start..], &iv.into());
        let sealed = match self {
            Self::Aes128(aes) => {
                cbc::Encryptor::inner_iv_init(aes, iv).encrypt_padded::<NoPadding>(blocks, length)
            }
            Self::Aes192(aes) => {
                cbc::Encryptor::inner_iv_init(aes, iv).encrypt_padded::<NoPadding>(blocks, length)
            }
            Self::Aes256(aes) => {
                cbc::Encryptor::inner_iv_init(aes, iv).encrypt_padded::<NoPadding>(blocks, length)
            }
        };
        sealed.map(drop).map_err(|_| CipherError::Blocks)
    }

    fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (iv, blocks) = sealed.split_first_chunk::<BLOCK>().ok_or(CipherError::Short)?;
        if blocks.len() % BLOCK != 0 {
            return Err(CipherError::Blocks);
        }
        let (mut plain, iv) = (blocks.to_vec(), iv.into());
        let opened = match self {
            Self::Aes128(aes) => {
                cbc::Decryptor::inner_iv_init(aes, iv).decrypt_padded::<NoPadding>(&mut plain).map(drop)
            }
            Self::Aes192(aes) => {
                cbc::Decryptor::inner_iv_init(aes, iv).decrypt_padded::<NoPadding>(&mut plain).map(drop)
            }
            Self::Aes256(aes) => {
                cbc::Decryptor::inner_iv_init(aes, iv).decrypt_padded::<NoPadding>(&mut plain).map(drop)
            }
        };
        opened.map_err(|_| CipherError::Blocks)?;
        let last = *plain.last().ok_or(CipherError::NotPadded)?;
        let padding = usize::from(last);
        if padding == 0 || padding > plain.len() {
            return Err(CipherError::NotPadded);
        }
        let length = plain.len() - padding;
        if plain[length..].iter().any(|byte| *byte != last) {
            return Err(CipherError::Padding);
        }
        plain.truncate(length);
        Ok(plain)
    }
}

impl Gcm {
    fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(Box::new(Aes128Gcm::new_from_slice(key).ok()?)),
            24 => Self::Aes192(Box::new(AesGcm::new_from_slice(key).ok()?)),
            32 => Self::Aes256(Box::new(Aes256Gcm::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    /// Nonce, data, tag.
    fn seal(
        &self,
        nonce: [u8; GCM_NONCE],
        plain: &[u8],
        row: &[u8],
        out: &mut BytesMut,
    ) -> Result<(), CipherError> {
        out.put_slice(&nonce);
        let start = out.len();
        out.put_slice(plain);
        let data = &mut out[start..];
        let tag = match self {
            Self::Aes128(gcm) => encrypt(&**gcm, nonce, row, data),
            Self::Aes192(gcm) => encrypt(&**gcm, nonce, row, data),
            Self::Aes256(gcm) => encrypt(&**gcm, nonce, row, data),
        }?;
        out.put_slice(&tag);
        Ok(())
    }

    fn open(&self, sealed: &[u8], row: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (nonce, rest) = sealed.split_first_chunk::<GCM_NONCE>().ok_or(CipherError::Short)?;
        let (data, tag) = rest.split_last_chunk::<TAG>().ok_or(CipherError::Forged)?;
        let mut plain = data.to_vec();
        match self {
            Self::Aes128(gcm) => decrypt(&**gcm, *nonce, row, &mut plain, *tag),
            Self::Aes192(gcm) => decrypt(&**gcm, *nonce, row, &mut plain, *tag),
            Self::Aes256(gcm) => decrypt(&**gcm, *nonce, row, &mut plain, *tag),
        }?;
        Ok(plain)
    }
}

fn encrypt<A>(gcm: &A, nonce: [u8; GCM_NONCE], row: &[u8], data: &mut [u8]) -> Result<[u8; TAG], CipherError>
where
    A: AeadInOut<NonceSize = U12, TagSize = aes_gcm::aead::array::typenum::U16>,
{
    let tag = gcm.encrypt_inout_detached(&Nonce::<A>::from(nonce), row, data.into());
    tag.map(Into::into).map_err(|_| CipherError::Forged)
}

fn decrypt<A>(
    gcm: &A,
    nonce: [u8; GCM_NONCE],
    row: &[u8],
    data: &mut [u8],
    tag: [u8; TAG],
) -> Result<(), CipherError>
where
    A: AeadInOut<NonceSize = U12, TagSize = aes_gcm::aead::array::typenum::U16>,
{
    let (nonce, tag) = (Nonce::<A>::from(nonce), Tag::<A>::from(tag));
    gcm.decrypt_inout_detached(&nonce, row, data.into(), &tag).map_err(|_| CipherError::Forged)
}

/// NaCl's secretbox: nonce, tag, data.
fn seal_box(
    key: &[u8; 32],
    nonce: [u8; BOX_NONCE],
    plain: &[u8],
    out: &mut BytesMut,
) -> Result<(), CipherError> {
    let (mut stream, poly) = box_stream(key, &nonce);
    out.put_slice(&nonce);
    let start = out.len();
    out.put_bytes(0, TAG);
    out.put_slice(plain);
    let (tag, data) = out[start..].split_at_mut(TAG);
    stream.apply_keystream(data);
    tag.copy_from_slice(&poly.compute_unpadded(data));
    Ok(())
}

fn open_box(key: &[u8; 32], sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
    let (nonce, rest) = sealed.split_first_chunk::<BOX_NONCE>().ok_or(CipherError::Short)?;
    let (tag, data) = rest.split_first_chunk::<TAG>().ok_or(CipherError::Short)?;
    let (mut stream, poly) = box_stream(key, nonce);
    if !bool::from(poly.compute_unpadded(data).as_slice().ct_eq(tag)) {
        return Err(CipherError::ForgedBox);
    }
    let mut plain = data.to_vec();
    stream.apply_keystream(&mut plain);
    Ok(plain)
}

/// The stream behind the key of Poly1305, and that.
fn box_stream(key: &[u8; 32], nonce: &[u8; BOX_NONCE]) -> (XSalsa20, Poly1305) {
    let mut stream = <XSalsa20 as salsa20::cipher::KeyIvInit>::new(key.into(), nonce.into());
    let mut poly_key = [0; POLY_KEY];
    stream.apply_keystream(&mut poly_key);
    (stream, <Poly1305 as poly1305::universal_hash::KeyInit>::new(&poly_key.into()))
}

/// A seed, from which the key of each value is derived: with HKDF-SHA256, of which it is the pseudo-random key, and 32
/// random bytes that precede the value.
pub struct Seed(Box<[u8]>);

impl Seed {
    pub const LENGTH: usize = 32;

    pub fn new(secret: &[u8]) -> Result<Self, CipherError> {
        match secret.len() {
            length if length < Self::LENGTH => Err(CipherError::Seed(length)),
            _ => Ok(Self(secret.into())),
        }
    }

    pub fn sealed_len(plain: usize) -> usize {
        INFO + GCM_NONCE + plain + TAG
    }

    pub fn seal(&self, plain: &[u8], row: &[u8], out: &mut BytesMut) -> Result<(), CipherError> {
        self.seal_with(random()?, random()?, plain, row, out)
    }

    fn seal_with(
        &self,
        info: [u8; INFO],
        nonce: [u8; GCM_NONCE],
        plain: &[u8],
        row: &[u8],
        out: &mut BytesMut,
    ) -> Result<(), CipherError> {
        out.put_slice(&info);
        self.key(&info)?.seal(nonce, plain, row, out)
    }

    pub fn open(&self, data: &[u8], row: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (info, sealed) = data.split_first_chunk::<INFO>().ok_or(CipherError::Short)?;
        self.key(info)?.open(sealed, row)
    }

    /// The first block of the expansion, which is as long as the key.
    fn key(&self, info: &[u8; INFO]) -> Result<Gcm, CipherError> {
        let length = CipherError::Seed(self.0.len());
        let mut expansion = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&self.0).map_err(|_| length)?;
        expansion.update(info);
        expansion.update(&[1]);
        Gcm::new(&expansion.finalize().into_bytes()).ok_or(length)
    }
}

#[cfg(test)]
mod tests;
