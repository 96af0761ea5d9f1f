//! Macros to write trees in JSON notation.

/// A value in JSON notation. Names and values may be expressions, which are borrowed.
#[macro_export]
macro_rules! tree_json {
    (null) => { $crate::tree::Value::Null };
    ([ $($items:tt)* ]) => {{
        #[allow(unused_mut, reason = "what is empty is not filled")]
        let mut items = ::std::vec::Vec::from([]);
        $crate::json_items!(items, $($items)*);
        $crate::tree::Value::Array(items)
    }};
    ({ $($members:tt)* }) => {{
        #[allow(unused_mut, reason = "what is empty is not filled")]
        let mut members = $crate::tree::Map::new();
        $crate::json_members!(members, $($members)*);
        $crate::tree::Value::Object(members)
    }};
    ($value:expr) => { $crate::tree::ToTree::to_tree(&$value) };
}

/// The elements of a list in [`json!`](crate::tree::json!).
#[doc(hidden)]
#[macro_export]
macro_rules! json_items {
    ($to:ident,) => {};
    ($to:ident, null $(, $($rest:tt)*)?) => {
        $to.push($crate::tree::Value::Null);
        $crate::json_items!($to, $($($rest)*)?);
    };
    ($to:ident, [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $to.push($crate::tree_json!([ $($inner)* ]));
        $crate::json_items!($to, $($($rest)*)?);
    };
    ($to:ident, { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $to.push($crate::tree_json!({ $($inner)* }));
        $crate::json_items!($to, $($($rest)*)?);
    };
    ($to:ident, $value:expr $(, $($rest:tt)*)?) => {
        $to.push($crate::tree_json!($value));
        $crate::json_items!($to, $($($rest)*)?);
    };
}

/// The members of an object in [`json!`](crate::tree::json!).
#[doc(hidden)]
#[macro_export]
macro_rules! json_members {
    ($to:ident,) => {};
    ($to:ident, $name:tt : null $(, $($rest:tt)*)?) => {
        $to.insert($name, $crate::tree::Value::Null);
        $crate::json_members!($to, $($($rest)*)?);
    };
    ($to:ident, $name:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $to.insert($name, $crate::tree_json!([ $($inner)* ]));
        $crate::json_members!($to, $($($rest)*)?);
    };
    ($to:ident, $name:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $to.insert($name, $crate::tree_json!({ $($inner)* }));
        $crate::json_members!($to, $($($rest)*)?);
    };
    ($to:ident, $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $to.insert($name, $crate::tree_json!($value));
        $crate::json_members!($to, $($($rest)*)?);
    };
}
