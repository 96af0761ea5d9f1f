//! How pods are reached: services, their endpoints, what leads to them and what stands between.

pub mod address;
mod cluster_ip;
pub mod endpoint_slice;
pub mod endpoints;
pub mod ingress;
pub mod ingress_class;
mod load_balancer;
pub mod policy;
pub mod service;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
