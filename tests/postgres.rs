//! The link to PostgreSQL: how it is secured, what sessions rely on, what a stall leaves behind, and that a database is not
//! believed because it answers.

mod support;

#[path = "postgres/lineage.rs"]
mod lineage;
#[path = "postgres/sessions.rs"]
mod sessions;
#[path = "postgres/tls.rs"]
mod tls;
