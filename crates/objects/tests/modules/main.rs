//! Tests of modules through their public items, in a file for each module.

mod codec_at_rest;
mod codec_managed;
mod codec_protobuf_version;
mod kinds;
mod kinds_behavior_columns_text;
mod kinds_behavior_conversion;
mod kinds_behavior_format;
mod kinds_behavior_gated_fields;
mod kinds_behavior_scale;
mod kinds_behavior_strategy;
mod kinds_behavior_warnings;
mod kinds_built_in_enablement;
mod kinds_columns;
mod kinds_core_persistent_volume_claim_source;
mod kinds_core_pod_label_keys;
mod patch_apply_schema_structural;
mod patch_merge;
mod patch_strategic;
mod protowire;
mod schema_defaults;
mod schema_names;
mod schema_registry;
mod schema_types;
mod schema_types_unstructured;
