//! Distinguished names, and the strings in them.

use std::fmt::Write as _;

use crate::der::{Der, SEQUENCE, SET};
use crate::error::Error;

const COUNTRY: &[u8] = &[0x55, 4, 6];
const PROVINCE: &[u8] = &[0x55, 4, 8];
const LOCALITY: &[u8] = &[0x55, 4, 7];
const STREET: &[u8] = &[0x55, 4, 9];
const POSTAL_CODE: &[u8] = &[0x55, 4, 17];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
const UNIT: &[u8] = &[0x55, 4, 11];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SERIAL_NUMBER: &[u8] = &[0x55, 4, 5];

/// The attributes that Go writes of a name that it has read, in its order; of the last two, the last value only.
const WRITTEN: [&[u8]; 9] =
    [COUNTRY, PROVINCE, LOCALITY, STREET, POSTAL_CODE, ORGANIZATION, UNIT, COMMON_NAME, SERIAL_NUMBER];

/// One attribute of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Encoded, without tag and length.
    pub oid: Vec<u8>,
    pub value: String,
}

/// The attributes of a name, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    pub attributes: Vec<Attribute>,
}

impl Name {
    /// Reads the content of a `Name`.
    pub(crate) fn read(mut raw: Der<'_>) -> Result<Self, Error> {
        let invalid = |what: &str| Error::malformed(format!("invalid RDNSequence{what}"));
        let mut attributes = Vec::new();
        while !raw.is_empty() {
            let mut set = raw.read(SET).ok_or_else(|| invalid(""))?;
            while !set.is_empty() {
                let mut pair = set.read(SEQUENCE).ok_or_else(|| invalid(": invalid attribute"))?;
                let oid = pair.oid().ok_or_else(|| invalid(": invalid attribute type"))?.to_vec();
                let value = pair.any().ok_or_else(|| invalid(": invalid attribute value"))?;
                let value = string(value.tag, value.content)
                    .map_err(|why| invalid(&format!(": invalid attribute value: {why}")))?;
                attributes.push(Attribute { oid, value });
            }
        }
        Ok(Self { attributes })
    }

    /// All values of an attribute.
    pub fn values(&self, oid: &[u8]) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(move |one| one.oid == oid).map(|one| one.value.as_str())
    }

    /// The last common name; empty if there is none.
    pub fn common_name(&self) -> &str {
        self.values(COMMON_NAME).last().unwrap_or_default()
    }

    pub fn organizations(&self) -> impl Iterator<Item = &str> {
        self.values(ORGANIZATION)
    }

    /// The name in DER as Go writes one that it has read (`pkix.Name`): attributes that it does not know are left out.
    pub fn to_der(&self) -> Vec<u8> {
        let mut sets = Vec::new();
        for oid in WRITTEN {
            let mut values: Vec<&str> = self.values(oid).collect();
            if [COMMON_NAME, SERIAL_NUMBER].contains(&oid) {
                values = values.pop().into_iter().filter(|value| !value.is_empty()).collect();
            }
            let mut pairs: Vec<Vec<u8>> = values.into_iter().map(|value| pair(oid, value)).collect();
            if pairs.is_empty() {
                continue;
            }
            // Values of a set are in the order of their bytes.
            pairs.sort();
            sets.push(tagged(SET, &pairs.concat()));
        }
        tagged(SEQUENCE, &sets.concat())
    }
}

fn pair(oid: &[u8], value: &str) -> Vec<u8> {
    // Go prefers the older type where its characters do, and takes neither `*` nor `&` for one of them.
    let is_printable = value.bytes().all(|byte| is_printable(byte) && byte != b'*' && byte != b'&');
    let value = tagged(if is_printable { PRINTABLE } else { UTF8 }, value.as_bytes());
    tagged(SEQUENCE, &[tagged(6, oid), value].concat())
}

/// A value in DER.
pub(crate) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            out.push(0x80 | (bytes.len() - zeros) as u8);
            out.extend_from_slice(&bytes[zeros..]);
        }
    }
    out.extend_from_slice(content);
    out
}

const UTF8: u8 = 12;
const NUMERIC: u8 = 18;
const PRINTABLE: u8 = 19;
const T61: u8 = 20;
const IA5: u8 = 22;
const BMP: u8 = 30;

/// The text of a string of one of six types.
fn string(tag: u8, value: &[u8]) -> Result<String, String> {
    let ascii = |is_valid: &dyn Fn(u8) -> bool, kind: &str| match value.iter().all(|byte| is_valid(*byte)) {
        true => Ok(value.iter().map(|byte| char::from(*byte)).collect()),
        false => Err(format!("invalid {kind}")),
    };
    match tag {
        // Latin-1 is nearly the same, and what everybody writes.
        T61 => Ok(value.iter().map(|byte| char::from(*byte)).collect()),
        PRINTABLE => ascii(&is_printable, "PrintableString"),
        IA5 => ascii(&|byte| byte.is_ascii(), "IA5String"),
        NUMERIC => ascii(&|byte| byte.is_ascii_digit() || byte == b' ', "NumericString"),
        UTF8 => String::from_utf8(value.to_vec()).map_err(|_| "invalid UTF-8 string".to_owned()),
        BMP => bmp(value).ok_or_else(|| "invalid BMPString".to_owned()),
        other => Err(format!("unsupported string type: {other}")),
    }
}

/// Printable characters of ASN.1, and two that certificates have besides.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}

/// Characters of two bytes; a zero at the end does not count.
fn bmp(value: &[u8]) -> Option<String> {
    let (pairs, rest) = value.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let pairs = pairs.strip_suffix(&[[0, 0]]).unwrap_or(pairs);
    pairs.iter().map(|pair| u16::from_be_bytes(*pair)).try_fold(String::new(), |mut text, point| {
        let is_none = matches!(point, 0xfffe | 0xffff | 0xfdd0..=0xfdef);
        text.push(char::from_u32(u32::from(point)).filter(|_| !is_none)?);
        Some(text)
    })
}

/// An object identifier with dots.
pub(crate) fn dotted(oid: &[u8]) -> String {
    let (mut text, mut part, mut is_first) = (String::new(), 0u64, true);
    for byte in oid {
        part = part << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        let _ = match std::mem::take(&mut is_first) {
            true => write!(text, "{}.{}", (part / 40).min(2), part - 40 * (part / 40).min(2)),
            false => write!(text, ".{part}"),
        };
        part = 0;
    }
    text
}
