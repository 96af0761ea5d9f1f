//! Permissions of ranges of keys.

use crate::wire::messages::{Permission, PermissionType};

/// Keys from the first to before the second, if there is an end.
type Span<'a> = (&'a [u8], Option<Vec<u8>>);

/// The keys of a range as requests name them.
fn span<'a>(key: &'a [u8], range_end: &[u8]) -> Span<'a> {
    match range_end {
        // A key alone ends before its successor.
        [] => (key, Some([key, b"\0"].concat())),
        [0] => (key, None),
        end => (key, Some(end.to_vec())),
    }
}

/// Whether some permissions together cover all keys of a range.
pub fn may(permissions: &[&Permission], wanted: PermissionType, key: &[u8], range_end: &[u8]) -> bool {
    let permits = |permission: &&&Permission| {
        [wanted as i32, PermissionType::ReadWrite as i32].contains(&permission.perm_type)
    };
    let permitted = permissions.iter().filter(permits);
    let mut spans: Vec<Span<'_>> = permitted.map(|held| span(&held.key, &held.range_end)).collect();
    spans.sort_unstable();
    let (first, end) = span(key, range_end);
    let mut covered = first.to_vec();
    for (from, to) in spans {
        if *from > *covered {
            return false;
        }
        match (to, &end) {
            (None, _) => return true,
            (Some(to), Some(end)) if to >= *end => return true,
            (Some(to), _) if to > covered => covered = to,
            (Some(_), _) => {}
        }
    }
    // An empty range is that of no key.
    end.is_some_and(|end| *end <= *first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(kind: PermissionType, key: &str, range_end: &str) -> Permission {
        let text = |text: &str| text.as_bytes().to_vec().into();
        Permission { perm_type: kind as i32, key: text(key), range_end: text(range_end) }
    }

    #[test]
    fn ranges_may_be_covered_by_several_permissions() {
        use PermissionType::{Read, ReadWrite, Write};
        let held = [
            permission(Read, "a", "c"),
            permission(ReadWrite, "b", "d"),
            permission(Write, "d", "e"),
            permission(Read, "x", "\0"),
            permission(Write, "k", ""),
        ];
        let held: Vec<&Permission> = held.iter().collect();
        for (wanted, key, end, is_permitted) in [
            (Read, "a", "", true),
            (Read, "a", "d", true),
            (Read, "a", "d\0", false),
            (Read, "d", "", false),
            (Write, "b", "e", true),
            (Write, "a", "b\0", false),
            (Write, "a", "", false),
            (Read, "x", "\0", true),
            (Read, "y", "z", true),
            (Read, "w", "\0", false),
            (Write, "k", "", true),
            (Write, "k", "l", false),
            (Write, "ka", "", false),
        ] {
            let found = may(&held, wanted, key.as_bytes(), end.as_bytes());
            assert_eq!(found, is_permitted, "{wanted:?} {key:?} {end:?}");
        }
        assert!(!may(&[], Read, b"a", b""));
    }
}
