//! Code that integration tests share.
#![allow(dead_code, unused_macros, reason = "every test crate uses a part of it")]

/// The tests of one case on the two databases.
macro_rules! on_databases {
    ($case:ident) => {
        use crate::support::{database::Database, server::Setup};

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn sqlite() {
            super::$case(Setup::new(Database::sqlite())).await
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn postgres() {
            super::$case(Setup::new(Database::postgres().await)).await
        }
    };
}

/// Makes two tests of each case: a module with the name of the case that contains `sqlite` and `postgres`.
macro_rules! on_both_databases {
    ($($case:ident),* $(,)?) => {
        $(mod $case {
            on_databases!($case);
        })*
    };
}

/// Makes three tests of each case: those of `on_both_databases`, and `memory`.
macro_rules! on_every_store {
    ($($case:ident),* $(,)?) => {
        $(mod $case {
            on_databases!($case);

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory() {
                super::$case(Setup::new(Database::memory())).await
            }
        })*
    };
}

pub mod client;
pub mod clock;
pub mod cluster;
pub mod conversion_hook;
pub mod database;
pub mod disk;
pub mod egress;
pub mod extension;
pub mod faulty;
pub mod grpc;
pub mod haproxy;
pub mod kms;
pub mod kubelet;
pub mod object;
pub mod optional;
pub mod pod;
pub mod postgres;
pub mod postgres_programs;
pub mod preloaded;
pub mod process;
pub mod proxy;
pub mod raced;
pub mod rest;
pub mod server;
pub mod site;
pub mod verbs;
pub mod webhook;
