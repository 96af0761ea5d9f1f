//! etcd's API on the wire, by gRPC and by JSON, on a store in memory; the numbers are those of docs/spec/etcd.md, 12.

mod auth;
mod json;
mod maintenance;
mod queues;
mod support;
