//! Tests of modules through their public items, in a file for each module.

mod answers_interim;
mod cache_state;
mod egress_config;
mod encryption_configuration;
mod identity;
mod identity_instance;
mod metrics;
mod private_files;
mod random;
mod relay_tunnel;
mod storage_mark;
mod tasks;
mod traces_config;
