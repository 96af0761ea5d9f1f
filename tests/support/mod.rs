//! What integration tests share: a fresh database of either kind.
#![allow(dead_code, reason = "every test crate uses a part of it")]

pub mod client;
pub mod database;
pub mod object;
pub mod postgres;
pub mod process;
pub mod rest;
pub mod server;
