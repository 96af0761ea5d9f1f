//! The contract of `storage::Backend` and of `storage::Store`, case by case, on SQLite, on PostgreSQL and in memory.

#[path = "../support/mod.rs"]
mod support;

mod clock;
mod compaction;
mod counting;
mod feed;
mod forks;
mod history;
mod lost_commits;
mod open;
mod reads;
mod registration;
mod replicas;
mod small_tables;
mod stale;
mod store;
mod writes;

/// Makes a module of tests for one store: `store::module::case`.
macro_rules! on_store {
    ($store:ident, $made:expr; $($module:ident { $($case:ident)* })*) => {
        mod $store {
            $(mod $module {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    crate::$module::$case(&$made).await
                })*
            })*
        }
    };
}

/// Runs the cases of the contract on every store, and those that need SQL on both databases.
macro_rules! conformance {
    (
        on_every_store { $($module:ident { $($case:ident),* $(,)? })* }
        on_both_databases { $($of_sql:ident { $($sql_case:ident),* $(,)? })* }
    ) => {
        on_store!(sqlite, crate::support::database::Database::sqlite();
            $($module { $($case)* })* $($of_sql { $($sql_case)* })*);
        on_store!(postgres, crate::support::database::Database::postgres().await;
            $($module { $($case)* })* $($of_sql { $($sql_case)* })*);
        on_store!(memory, crate::support::database::Database::memory(); $($module { $($case)* })*);
    };
}

conformance! {
    on_every_store {
        writes {
            a_precondition_decides,
            losers_fail_alone_and_take_no_revision,
            a_batch_of_losers_leaves_no_trace,
            one_key_many_times_in_a_batch,
            what_is_joined_passes_together_or_not_at_all,
            what_was_decided_before_commits_were_lost_is_not_written,
            every_batch_size,
            unusual_names_and_values,
            a_requirement_about_another_row_decides,
            every_number_of_requirements,
        }
        reads {
            lists_at_every_past_revision,
            what_is_live_is_read_by_revision,
            lists_are_in_the_order_of_bytes,
            the_future_is_refused,
            a_list_is_one_snapshot,
            an_abandoned_list_frees_its_connection,
            reopening_finds_everything,
        }
        feed {
            tells_every_write_with_its_values,
            comes_in_pieces,
        }
        counting {
            a_unit_has_one_revision_or_none,
            no_page_ends_within_a_unit,
            a_unit_of_thousands_is_one_revision,
            a_range_that_changes_fails_the_write,
            counts_survive_compaction_and_a_restart,
        }
        history {
            a_time_is_a_revision,
            stamps_follow_revisions,
            versions_and_changes_have_their_writers,
            stamps_stand_still_while_the_clock_is_back,
            each_resource_has_a_floor_of_its_own,
            marks_outlive_changes,
            the_largest_resource_gives_way_to_the_budget,
        }
        compaction {
            history_ends_at_the_compacted_revision,
            removes_what_is_dead_and_nothing_else,
            never_goes_back_or_ahead_of_the_clock,
            sweeps_while_writes_go_on,
            runs_by_itself,
        }
        clock {
            a_clock_below_the_floor_writes_nothing,
            a_store_jumps_over_what_its_mark_has_seen,
            advancing_gives_up_older_states,
        }
        small_tables {
            resource_ids_are_stable,
            resource_ids_are_made_once_by_many,
            token_keys_rotate,
        }
        registration {
            only_a_registered_server_writes,
            a_registration_and_its_mutations_pass_together,
        }
        stale {
            rows_in_another_encoding_are_found,
        }
        store {
            nothing_longer_than_the_limit_is_written,
            one_hot_key_has_one_winner_per_version,
            many_writers_get_consecutive_revisions,
            joined_writes_are_never_split,
            commits_reach_the_sink_before_the_writer,
            nothing_is_written_that_could_not_be_shown,
            a_caller_that_goes_away_does_not_stop_its_write,
            large_values_in_one_batch,
        }
    }
    on_both_databases {
        lost_commits {
            a_lost_commit_is_noticed,
            the_store_jumps_over_lost_commits,
        }
        open {
            a_newer_schema_is_refused,
            a_foreign_migration_is_refused,
            foreign_tables_are_refused,
        }
    }
}
