use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::tree::{Map, json};

/// No text needs the reader of clients' documents, or could not be read at all.
#[test]
fn what_is_written_is_read_back_without_the_limits() {
    let seed = 1;
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let odd = "ab01.-+eEx_:#'\"\\\n\t\r ,[]{}&*!|>%@`?=<~\u{85}\u{2028}\u{feff}\u{7f}\u{0}\u{a0}\u{10ffff}";
    let odd: Vec<char> = odd.chars().collect();
    for _ in 0..20_000 {
        let length = random.random_range(0..7);
        let text: String = (0..length).map(|_| odd[random.random_range(0..odd.len())]).collect();
        let mut members = Map::new();
        members.insert(text.clone(), json!([text.clone(), {"k": text.clone()}, 1.5e20, -0.5, null, true]));
        let value = Value::Object(members);
        assert_eq!(written::read(&write(&value)), Some(value), "{text:?}");
    }
}
