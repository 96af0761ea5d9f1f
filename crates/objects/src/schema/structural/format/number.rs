//! Numbers that check themselves.

fn digit(b: u8) -> u32 {
    u32::from(b - b'0')
}

/// Without spaces and hyphens.
fn bare(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'-')).collect()
}

pub fn is_isbn10(text: &str) -> bool {
    let bare = bare(text);
    let [first @ .., last] = &bare[..] else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let sum: u32 = first.iter().zip(1..).map(|(b, weight)| weight * digit(*b)).sum();
    let last = if *last == b'X' { 10 } else { digit(*last) };
    (sum + 10 * last).is_multiple_of(11)
}

pub fn is_isbn13(text: &str) -> bool {
    let bare = bare(text);
    if bare.len() != 13 || !bare.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        bare[..12].iter().zip([1, 3].into_iter().cycle()).map(|(b, weight)| weight * digit(*b)).sum();
    digit(bare[12]) == (10 - sum % 10) % 10
}

/// The digits of a text, whatever stands between them.
pub fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !has_issuer(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, b)| {
            let doubled = digit(b) * if at % 2 == 1 { 2 } else { 1 };
            doubled % 10 + doubled / 10
        })
        .sum();
    sum.is_multiple_of(10)
}

fn has_issuer(digits: &str) -> bool {
    let prefix =
        |length: usize| digits.get(..length).and_then(|prefix| prefix.parse::<u32>().ok()).unwrap_or(0);
    match digits.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(3), 300..=305) || matches!(prefix(2), 36 | 38),
        15 => matches!(prefix(2), 34 | 37) || matches!(prefix(4), 2131 | 1800),
        16 => prefix(1) == 4 || matches!(prefix(2), 51..=55 | 35) || prefix(4) == 6011 || prefix(2) == 65,
        _ => false,
    }
}

/// Whether a text is a social security number with both separators: upstream refuses all forms but that of 11 characters.
pub fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(at, b)| match at {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}
