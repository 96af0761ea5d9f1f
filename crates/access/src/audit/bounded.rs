//! Events of a bounded size. A client chooses the length of its URL, and with it that of names, messages and annotations.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The longest text that is kept whole, as upstream has it for user agents.
const LONGEST_TEXT: usize = 1024;
const SUFFIX: &str = "...TRUNCATED";
/// The most items of a list, and members of an object.
const MOST_ITEMS: usize = 64;
/// Events of up to so many bytes, objects aside, are not searched for long texts.
const LONGEST_WHOLE: usize = 4 << 10;
/// The members with the objects of request and response, whose size is the policy's business.
const OBJECTS: [&str; 2] = ["requestObject", "responseObject"];

/// A text of at most [`LONGEST_TEXT`] bytes, and a suffix if it was longer.
pub fn shortened(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= LONGEST_TEXT {
        return text;
    }
    let mut end = LONGEST_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    [&text[..end], SUFFIX].concat().into()
}

/// The event with long texts and long lists cut. Its objects, which take `objects` bytes of it, stay whole.
pub fn bounded(item: &[u8], objects: usize) -> Cow<'_, [u8]> {
    if item.len().saturating_sub(objects) <= LONGEST_WHOLE {
        return item.into();
    }
    let Ok(mut event) = serde_json::from_slice::<Map<String, Value>>(item) else { return item.into() };
    for (name, value) in &mut event {
        if !OBJECTS.contains(&name.as_str()) {
            bound(value);
        }
    }
    serde_json::to_vec(&event).map_or(item.into(), Cow::Owned)
}

fn bound(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => {
            *text = shortened(text.as_str().into()).into_owned()
        }
        Value::Array(items) => {
            items.truncate(MOST_ITEMS);
            items.iter_mut().for_each(bound);
        }
        Value::Object(members) => {
            let extra: Vec<String> = members.keys().skip(MOST_ITEMS).cloned().collect();
            extra.iter().for_each(|name| _ = members.shift_remove(name));
            members.values_mut().for_each(bound);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("kubectl".into()), "kubectl");
        let cut = shortened("a".repeat(1025).into());
        assert_eq!((cut.len(), &cut[1024..]), (1024 + SUFFIX.len(), SUFFIX));
        let cut = shortened(["a", &"\u{e9}".repeat(1024)].concat().into());
        assert_eq!(cut.len(), 1023 + SUFFIX.len());
    }

    #[test]
    fn long_events_are_cut_but_for_their_objects() {
        let long = "x".repeat(60_000);
        let event = json!({"requestURI": long, "verb": "get", "objectRef": {"name": long},
            "sourceIPs": vec!["1.1.1.1"; 1000], "requestObject": {"data": long}});
        let text = event.to_string();
        let cut: Value = serde_json::from_slice(&bounded(text.as_bytes(), long.len())).expect("an event");
        let texts = [&cut["requestURI"], &cut["objectRef"]["name"]];
        for text in texts.map(|text| text.as_str().expect("a text")) {
            assert!(text.len() < 1100 && text.ends_with(SUFFIX), "{text}");
        }
        assert_eq!(cut["sourceIPs"].as_array().map(Vec::len), Some(MOST_ITEMS));
        assert_eq!((&cut["requestObject"], &cut["verb"]), (&event["requestObject"], &event["verb"]));
        let short = br#"{"verb":"get"}"#;
        assert_eq!(*bounded(short, 0), *short);
    }
}
