//! Kinds that run pods to an end (`pkg/apis/batch/validation`).

pub mod cron_job;
mod indexes;
pub mod job;
mod job_policy;
mod job_status;
mod schedule;
