//! The API over real HTTPS: a file for a subject, most of them a section of a specification.
//!
//! A test that proves item 27 of `docs/spec/wire.md` is called `wire_27_…`, one of items 3 and 5 to 8 of `docs/spec/auth.md`
//! `auth_3_5_to_8_…`; other tests are named by what they prove alone. `tests/house --items` lists the items that no test has in its
//! name. [`on_every_store!`] runs a case as `…::sqlite`, `…::postgres` and `…::memory`, [`on_both_databases!`] as the first two.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod actions;
mod aggregation;
mod apply;
mod apply_rules;
mod at_rest;
mod auth;
mod authorization;
mod authorizers;
mod bad_bodies;
mod bad_urls;
mod bookmarks;
mod bounded_work;
mod catalog;
mod certificates;
mod claim_rights;
mod client_certificates;
mod cluster_controllers;
mod configured;
mod connect;
mod console;
mod credentials;
mod custom_resources;
mod decoding;
mod delete;
mod deletecollection;
mod discovery;
mod documents;
mod draining;
mod effects;
mod egress;
mod encodings;
mod encryption;
mod events;
mod evictions;
mod external_signer;
mod field_validation;
mod frames;
mod garbage;
mod heads;
mod history;
mod hostile_credentials;
mod known_attacks;
mod list;
mod list_options;
mod managers;
mod messages;
mod metrics;
mod namespaces;
mod negotiation;
mod node_restriction;
mod object_length;
mod oidc;
mod openapi;
mod paging;
mod past;
mod patch;
mod patch_formats;
mod patch_limits;
mod plugin_configurations;
mod plugins;
mod pod_admission;
mod pods;
mod policies;
mod protobuf;
mod quotas;
mod representation;
mod revocations;
mod service_accounts;
mod services;
mod signing_requests;
mod sql;
mod startup;
mod statuses;
mod system_objects;
mod tables;
mod tls;
mod together;
mod traces;
mod undecodable;
mod update;
mod validation;
mod watch;
mod watch_form;
mod webhooks;
mod websockets;
mod wire;
mod write;
mod writes;
