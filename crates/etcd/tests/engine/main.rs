//! etcd's API without its wire, on every store: the assertions of docs/spec/etcd.md, section 12, by their numbers.

mod compaction;
mod kv;
mod leases;
mod model;
mod servers;
mod support;
mod txns;
mod watches;

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

/// Runs cases on every store, and those that need several servers, or one that is started anew, where there can be
/// some.
macro_rules! cases {
    (
        on_every_store { $($module:ident { $($case:ident),* $(,)? })* }
        of_several_servers { $($of_servers:ident { $($server_case:ident),* $(,)? })* }
    ) => {
        on_store!(memory, crate::support::Database::memory(); $($module { $($case)* })*);
        on_store!(sqlite, crate::support::Database::sqlite(); $($module { $($case)* })*);
        on_store!(postgres, crate::support::Database::postgres().await;
            $($module { $($case)* })* $($of_servers { $($server_case)* })*);
    };
}

cases! {
    on_every_store {
        kv {
            a1_revisions_begin_with_one_and_versions_count_puts,
            a2_what_changes_nothing_takes_no_revision,
            a12_requests_without_sense_are_refused,
            a13_ranges_are_in_the_order_of_bytes,
            a14_limits_counts_and_keys_only,
            a15_sorts_and_filters,
            a16_every_revision_can_be_read,
            a18_a_stream_is_one_state,
            a20_compare_and_swap_loses_nothing,
        }
        txns {
            a3_a_transaction_has_one_revision,
            a4_operations_are_limited,
            a5_no_key_is_written_twice,
            a6_compares_hold_as_in_etcd,
            a7_a_range_is_compared_as_a_whole,
            a8_reads_see_the_writes_before_them,
            a9_nested_compares_see_the_state_before,
            a10_a_path_is_checked_before_it_is_taken,
            a11_inner_headers_have_the_revision_only,
        }
        watches {
            a25_a_watch_may_start_where_history_begins,
            a27_where_a_watch_starts,
            a28_ids_and_refusals,
            a29_filters,
            a30_previous_versions,
            a31_progress_of_the_idle,
            a32_progress_that_was_asked_for,
            a33_fragments,
            a34_a_watch_that_reads_nothing,
        }
        compaction {
            a24_what_is_compacted_is_gone,
            a26_readers_are_not_disturbed,
            old_rows_are_swept,
            the_oldest_go_by_themselves,
            hashes_agree,
            a_snapshot_has_all_rows,
        }
        leases {
            a36_what_is_granted,
            a37_keys_go_with_their_lease,
            a38_a_lease_lives_as_long_as_it_is_renewed,
            a39_a_lease_that_is_revoked,
            a40_a_lease_has_its_full_time_after_a_restart,
        }
        model {
            random_transactions_are_those_of_etcd,
            a35_watches_keep_their_promises,
        }
    }
    of_several_servers {
        servers {
            a19_an_answered_write_is_seen_everywhere,
            a20_compare_and_swap_on_two_servers,
            a35_watches_on_two_servers,
            a40_what_another_server_has_renewed_lives_on,
        }
    }
}
