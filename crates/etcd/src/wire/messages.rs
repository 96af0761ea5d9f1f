//! The messages of etcd's API (packages etcdserverpb, mvccpb, authpb, v3lockpb and v3electionpb of etcd 3.7), one file per
//! service. Names and numbers of fields are etcd's; what a field means is in docs/spec/etcd.md.
//!
//! A field has its name on the wire, or `as "…"` tells that. The numbers of an enumeration stand in fields of i32, `in`
//! that enumeration.

mod auth;
mod cluster;
mod kv;
mod lease;
mod lock;
mod macros;
mod maintenance;
mod watch;

pub use self::auth::*;
pub use self::cluster::*;
pub use self::kv::*;
pub use self::lease::*;
pub use self::lock::*;
use self::macros::{enumeration, messages, oneof};
pub use self::maintenance::*;
pub use self::watch::*;

messages! {
    /// The state of the cluster in which a request was answered. Headers inside of a TxnResponse have the revision only.
    ResponseHeader {
        #[prost(uint64, tag = "1")] cluster_id: u64,
        #[prost(uint64, tag = "2")] member_id: u64,
        #[prost(int64, tag = "3")] revision: i64,
        #[prost(uint64, tag = "4")] raft_term: u64,
    }
}
