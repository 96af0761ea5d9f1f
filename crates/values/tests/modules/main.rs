//! Tests of modules through their public items, in a file for each module.

mod gotext;
mod gotext_time;
mod json;
mod json_exact;
mod json_node;
mod json_scan;
mod json_text;
mod jsonpath;
mod quantity;
mod regexp;
mod tree_map;
