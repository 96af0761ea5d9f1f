//! The table of `rowplane status --storage-versions`: in which versions objects are stored, and who writes them.

use crate::cli::table::aligned;
use crate::codec::sealed;
use crate::storage::Format;
use crate::storage::inventory::{Holdings, Inventory, LongObject, Stored};

const HEAD: [&str; 6] =
    ["RESOURCE", "OBJECTS", "STORED VERSIONS", "IN HISTORY", "COMMON ENCODING VERSION", "SERVERS"];

/// A row for each resource that has objects, or that servers encode.
pub fn text(inventory: &Inventory) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(inventory.resources.iter().map(|(resource, holdings)| row(&resource.to_string(), holdings)));
    aligned(&rows)
}

/// A line for each object; nothing if there is none.
pub fn text_of_long(long: &[LongObject], limit: usize) -> String {
    if long.is_empty() {
        return String::new();
    }
    let mut text =
        format!("\nlonger than --max-object-bytes {limit}: these can be read, deleted and made smaller\n");
    for LongObject { resource, name, bytes } in long {
        text.push_str(&format!("{resource} {name}: {bytes} bytes\n"));
    }
    text
}

fn row(resource: &str, holdings: &Holdings) -> [String; 6] {
    let common = match (holdings.common_encoding(), holdings.encodings.len()) {
        (Some(common), _) => common,
        (None, 0) => "<none>",
        (None, _) => "<unset>",
    };
    let list = |stored: &[Stored]| match stored {
        [] => "<none>".to_owned(),
        some => some.iter().map(encoding).collect::<Vec<_>>().join(", "),
    };
    let (stored, older) = (list(&holdings.stored), list(&holdings.older));
    let (objects, servers) = (holdings.objects().to_string(), holdings.encodings.len().to_string());
    [resource.to_owned(), objects, stored, older, common.to_owned(), servers]
}

/// The version and the encoding of objects, with their number.
pub fn encoding(stored: &Stored) -> String {
    let format = match &stored.format {
        Format::Json => "json".to_owned(),
        Format::Protobuf => "protobuf".to_owned(),
        Format::Sealed(prefix) => sealed::key_name(prefix),
    };
    format!("{} {format} ({})", stored.api_version, stored.objects)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::revision::Revision;
    use crate::schema::names::GroupResource;
    use crate::storage::inventory::Extent;

    #[test]
    fn the_table() {
        let stored = |api_version: &str, format, objects| Stored {
            api_version: api_version.to_owned(),
            format,
            objects,
        };
        let encodings = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(server, version)| ((*server).to_owned(), (*version).to_owned())).collect()
        };
        let inventory = Inventory {
            revision: Revision(7),
            extent: Extent::default(),
            history: Vec::new(),
            resources: BTreeMap::from([
                (
                    GroupResource::new("", "pods"),
                    Holdings {
                        stored: vec![stored("v1", Format::Json, 2), stored("v1", Format::Protobuf, 1)],
                        older: vec![stored("v1", Format::Json, 4)],
                        encodings: encodings(&[("b", "v1"), ("a", "v1")]),
                    },
                ),
                (
                    GroupResource::new("apps", "deployments"),
                    Holdings {
                        encodings: encodings(&[("a", "apps/v1"), ("b", "apps/v2")]),
                        ..Holdings::default()
                    },
                ),
            ]),
        };
        let expected = "\
RESOURCE          OBJECTS  STORED VERSIONS               IN HISTORY   COMMON ENCODING VERSION  SERVERS
pods              3        v1 json (2), v1 protobuf (1)  v1 json (4)  v1                       2
deployments.apps  0        <none>                        <none>       <unset>                  2
";
        assert_eq!(text(&inventory), expected);
        let long = LongObject { resource: GroupResource::new("", "pods"), name: "t/p".to_owned(), bytes: 9 };
        let told = "\nlonger than --max-object-bytes 8: these can be read, deleted and made smaller\npods t/p: 9 bytes\n";
        assert_eq!((text_of_long(&[long], 8), text_of_long(&[], 8)), (told.to_owned(), String::new()));
    }
}
