//! The API over real HTTPS, on SQLite and on PostgreSQL: the checklist of `docs/spec/list-watch.md` and what is around it.
//!
//! A test of item 27 of the checklist is called `c27_…`, one of assertion 27 of `docs/spec/patch-apply.md` `p27_…`, of
//! `docs/spec/wire.md` `w27_…`, of `docs/spec/admission.md` `a27_…`; elsewhere (`replicas.rs`, `kube_client.rs`) its doc begins with
//! the number. Every case runs twice, as `…::sqlite` and `…::postgres`. Which items have no test:
//!
//! ```sh
//! for n in $(seq -w 96); do grep -rqE "fn (c[0-9]+_)*c${n}_|^/// (.* and )?$n\b" tests || echo "$n"; done
//! ```

#[macro_use]
mod support;

#[path = "api/actions.rs"]
mod actions;
#[path = "api/apply.rs"]
mod apply;
#[path = "api/apply_rules.rs"]
mod apply_rules;
#[path = "api/at_rest.rs"]
mod at_rest;
#[path = "api/auth.rs"]
mod auth;
#[path = "api/authorization.rs"]
mod authorization;
#[path = "api/authorizers.rs"]
mod authorizers;
#[path = "api/bad_bodies.rs"]
mod bad_bodies;
#[path = "api/bad_urls.rs"]
mod bad_urls;
#[path = "api/bookmarks.rs"]
mod bookmarks;
#[path = "api/bounded_work.rs"]
mod bounded_work;
#[path = "api/catalog.rs"]
mod catalog;
#[path = "api/certificates.rs"]
mod certificates;
#[path = "api/claim_rights.rs"]
mod claim_rights;
#[path = "api/client_certificates.rs"]
mod client_certificates;
#[path = "api/cluster_controllers.rs"]
mod cluster_controllers;
#[path = "api/configured.rs"]
mod configured;
#[path = "api/connect.rs"]
mod connect;
#[path = "api/credentials.rs"]
mod credentials;
#[path = "api/custom_resources.rs"]
mod custom_resources;
#[path = "api/decoding.rs"]
mod decoding;
#[path = "api/delete.rs"]
mod delete;
#[path = "api/deletecollection.rs"]
mod deletecollection;
#[path = "api/discovery.rs"]
mod discovery;
#[path = "api/documents.rs"]
mod documents;
#[path = "api/draining.rs"]
mod draining;
#[path = "api/effects.rs"]
mod effects;
#[path = "api/encodings.rs"]
mod encodings;
#[path = "api/encryption.rs"]
mod encryption;
#[path = "api/events.rs"]
mod events;
#[path = "api/evictions.rs"]
mod evictions;
#[path = "api/external_signer.rs"]
mod external_signer;
#[path = "api/field_validation.rs"]
mod field_validation;
#[path = "api/frames.rs"]
mod frames;
#[path = "api/garbage.rs"]
mod garbage;
#[path = "api/heads.rs"]
mod heads;
#[path = "api/hostile_credentials.rs"]
mod hostile_credentials;
#[path = "api/known_attacks.rs"]
mod known_attacks;
#[path = "api/list.rs"]
mod list;
#[path = "api/list_options.rs"]
mod list_options;
#[path = "api/managers.rs"]
mod managers;
#[path = "api/messages.rs"]
mod messages;
#[path = "api/metrics.rs"]
mod metrics;
#[path = "api/namespaces.rs"]
mod namespaces;
#[path = "api/negotiation.rs"]
mod negotiation;
#[path = "api/node_restriction.rs"]
mod node_restriction;
#[path = "api/object_length.rs"]
mod object_length;
#[path = "api/oidc.rs"]
mod oidc;
#[path = "api/openapi.rs"]
mod openapi;
#[path = "api/paging.rs"]
mod paging;
#[path = "api/patch.rs"]
mod patch;
#[path = "api/patch_formats.rs"]
mod patch_formats;
#[path = "api/patch_limits.rs"]
mod patch_limits;
#[path = "api/plugin_configurations.rs"]
mod plugin_configurations;
#[path = "api/plugins.rs"]
mod plugins;
#[path = "api/pod_admission.rs"]
mod pod_admission;
#[path = "api/pods.rs"]
mod pods;
#[path = "api/policies.rs"]
mod policies;
#[path = "api/protobuf.rs"]
mod protobuf;
#[path = "api/quotas.rs"]
mod quotas;
#[path = "api/representation.rs"]
mod representation;
#[path = "api/revocations.rs"]
mod revocations;
#[path = "api/service_accounts.rs"]
mod service_accounts;
#[path = "api/services.rs"]
mod services;
#[path = "api/signing_requests.rs"]
mod signing_requests;
#[path = "api/startup.rs"]
mod startup;
#[path = "api/statuses.rs"]
mod statuses;
#[path = "api/system_objects.rs"]
mod system_objects;
#[path = "api/tables.rs"]
mod tables;
#[path = "api/tls.rs"]
mod tls;
#[path = "api/together.rs"]
mod together;
#[path = "api/undecodable.rs"]
mod undecodable;
#[path = "api/update.rs"]
mod update;
#[path = "api/validation.rs"]
mod validation;
#[path = "api/watch.rs"]
mod watch;
#[path = "api/watch_form.rs"]
mod watch_form;
#[path = "api/webhooks.rs"]
mod webhooks;
#[path = "api/websockets.rs"]
mod websockets;
#[path = "api/wire.rs"]
mod wire;
#[path = "api/write.rs"]
mod write;
#[path = "api/writes.rs"]
mod writes;
