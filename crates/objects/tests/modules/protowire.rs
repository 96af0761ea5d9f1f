//! Tests of `protowire`.

use rowplane_objects::protowire::Error;
use rowplane_objects::protowire::Reader;

#[test]
fn varints_end_or_say_why_not() {
    let read = |bytes: &[u8]| Reader::new(bytes).varint();
    assert_eq!(read(&[0xac, 0x02]), Ok(300));
    assert_eq!(read(&[0xff; 9]), Err(Error::UnexpectedEof));
    assert_eq!(read(&[0xff; 10]), Err(Error::Overflow));
    let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(read(&minus_one), Ok(u64::MAX));
    let lost_bits = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(read(&lost_bits), Ok(u64::MAX));
    assert_eq!(read(&[]), Err(Error::UnexpectedEof));
}

#[test]
fn unknown_fields_are_stepped_over() {
    let skip = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        let tag = reader.tag()?.expect("a tag");
        reader.skip(tag).map(|()| reader.is_empty())
    };
    assert_eq!(skip(&[0x0b, 0x10, 0x01, 0x13, 0x14, 0x0c]), Ok(true));
    assert_eq!(skip(&[0x0b, 0x10, 0x01]), Err(Error::UnexpectedEof));
    assert_eq!(skip(&[0x0c]), Err(Error::EndOfGroup));
    assert_eq!(skip(&[0x0d, 1, 2, 3]), Err(Error::UnexpectedEof));
    assert_eq!(skip(&[0x0f]), Err(Error::WireType(7)));
    let mut huge = vec![0x0a];
    huge.extend([0xff; 9]);
    huge.push(1);
    assert_eq!(skip(&huge), Err(Error::NegativeLength));
}
