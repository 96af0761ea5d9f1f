//! Tests of modules through their public items, in a file for each module.

mod gotext;
mod json;
mod json_scan;
mod quantity;
mod regexp;
