//! Certificate requests (PKCS#10).

use crate::alternative_names::AlternativeNames;
use crate::der::{Der, SEQUENCE, SET, constructed};
use crate::error::Error;
use crate::extensions::{self, ALTERNATIVE_NAMES};
use crate::key::PublicKey;
use crate::name::Name;
use crate::pem;
use crate::signature::{Algorithm, Sha1};

/// The attribute that holds extensions.
const EXTENSION_REQUEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14];
const LABEL: &str = "CERTIFICATE REQUEST";

/// A request as Go reads it. Two things that Go passes over are refused: values behind the last field, and a name with a
/// string of a type that Go has no text for.
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    pub subject: Name,
    pub names: AlternativeNames,
    pub key: PublicKey,
    /// The `SubjectPublicKeyInfo` in DER.
    pub raw_key: Vec<u8>,
    signed: Vec<u8>,
    algorithm: Algorithm,
    signature: Vec<u8>,
}

impl CertificateRequest {
    /// Reads the one block of a text, with comments around it. Other programs would find another request among several, or
    /// after a block that this one passes over; such a text is refused.
    pub fn of_pem(text: &[u8]) -> Result<Self, Error> {
        let wrong = || Error::Signature("PEM block type must be CERTIFICATE REQUEST");
        let (blocks, is_pure) = pem::blocks(text);
        let block = blocks.first().filter(|block| block.label == LABEL).ok_or_else(wrong)?;
        if blocks.len() > 1 || !is_pure || block.has_headers {
            return Err(Error::Signature("there must be one PEM block, without headers"));
        }
        Self::parse(&block.bytes)
    }

    /// Reads DER that nothing follows.
    pub fn parse(der: &[u8]) -> Result<Self, Error> {
        let bad = || Error::malformed("malformed certificate request");
        let mut input = Der(der);
        let mut fields = input.read(SEQUENCE).filter(|_| input.is_empty()).ok_or_else(bad)?;
        let signed = fields.element(SEQUENCE).ok_or_else(bad)?;
        let algorithm = fields.read(SEQUENCE).ok_or_else(bad)?;
        let signature =
            fields.bit_string().filter(|bits| bits.unused == 0 && fields.is_empty()).ok_or_else(bad)?;
        let mut body = Der(signed.content);
        body.small_integer().ok_or_else(bad)?;
        let subject = body.read(SEQUENCE).ok_or_else(bad)?;
        let key = body.element(SEQUENCE).ok_or_else(bad)?;
        let attributes = body.read(constructed(0)).filter(|_| body.is_empty()).ok_or_else(bad)?;
        Ok(Self {
            key: PublicKey::read(Der(key.content))?,
            raw_key: key.raw.to_vec(),
            subject: Name::read(subject)?,
            names: alternative_names(attributes)?,
            signed: signed.raw.to_vec(),
            algorithm: Algorithm::read(algorithm)?,
            signature: signature.bytes.to_vec(),
        })
    }

    /// Checks that whoever asks has the key: an algorithm that is not known proves nothing.
    pub fn check_signature(&self) -> Result<(), Error> {
        self.algorithm.verify(&self.key, &self.signed, &self.signature, Sha1::Taken)
    }
}

/// The alternative names that are asked for. Attributes of other forms are passed over, as those of old requests are.
fn alternative_names(mut attributes: Der<'_>) -> Result<AlternativeNames, Error> {
    let mut found = None;
    while !attributes.is_empty() {
        let attribute = attributes.any().ok_or_else(|| Error::malformed("malformed certificate request"))?;
        let mut pair = Der(attribute.content);
        if attribute.tag != SEQUENCE || pair.oid() != Some(EXTENSION_REQUEST) {
            continue;
        }
        let Some(mut values) = pair.read(SET).filter(|values| !values.is_empty()) else { continue };
        let list = values.read(SEQUENCE).ok_or_else(|| Error::malformed("malformed extensions"))?;
        let repeated = "certificate request contains duplicate requested extensions";
        for extension in extensions::list(list, repeated)? {
            if extension.oid != ALTERNATIVE_NAMES {
                continue;
            }
            if found.is_some() {
                return Err(Error::malformed(repeated));
            }
            found = Some(AlternativeNames::read(Der(extension.value))?);
        }
    }
    Ok(found.unwrap_or_default())
}
