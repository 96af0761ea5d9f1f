//! Authentication and authorization. This module knows nothing of SQL or of HTTP bodies.

pub mod authn;
pub mod authorizer;
pub mod pki;
pub mod token_file;
