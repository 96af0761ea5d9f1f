//! Authentication and authorization. This module knows nothing of SQL or of HTTP bodies.

pub mod authn;
pub mod authorizer;
pub mod node;
pub mod pki;
pub mod rbac;
pub mod token_file;
