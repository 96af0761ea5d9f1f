//! Tests of modules through their public items, in a file for each module.

mod kinds_columns;
mod patch_apply_schema_structural;
mod patch_merge;
mod patch_strategic;
mod protowire;
mod schema_defaults;
mod schema_names;
mod schema_registry;
mod schema_types_unstructured;
