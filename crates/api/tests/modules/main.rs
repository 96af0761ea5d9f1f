//! Tests of modules through their public items, in a file for each module.

mod config_service_ranges;
mod decode;
mod decode_claims;
mod deletion;
mod error_fixed;
mod kubelets;
mod layers;
mod meta;
mod options;
mod options_continue_token;
mod options_delete;
mod options_list;
mod options_query;
mod options_selector;
mod options_selector_attributes;
mod options_selector_field;
mod options_selector_label;
mod options_selector_label_structured;
mod options_strictness;
mod options_watch;
mod options_write;
mod storage_version_gate;
mod subresource_connect_container;
mod subresource_connect_log;
mod subresource_connect_options;
mod verdicts;
