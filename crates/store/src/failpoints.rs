//! Bugs that are planted on purpose, to see whether tests that inject faults would find their like. They exist in builds with
//! the feature `failpoints` only; elsewhere [`strikes`] is a constant that the compiler removes.
//!
//! `ROWPLANE_BUG=StaleRead` plants a bug, `ROWPLANE_BUG=StaleRead/20` one that strikes every twentieth time on average.
//! `tests/bugs` plants each of them and prints which checker found it.

/// A bug. Its name says what the server does then, or leaves undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    // Batches (`storage/judge.rs`, and `storage/postgres/batch.rs` where the database judges).
    StaleUpdate,
    RequirementIgnored,
    ConfigurationIgnored,
    FenceIgnored,
    HalfAGroup,
    CountedTwice,
    NotCounted,
    FailoverForgotten,
    // From the commit to the answer (`storage/writer.rs`, `storage/sqlite`).
    AnsweredBeforeVisible,
    AnsweredBeforeSync,
    SyncCoversTooMuch,
    DirectoryNotSynced,
    KeysNotSynced,
    /// On PostgreSQL (`storage/postgres/session.rs`).
    CommitNotSynced,
    // History (`storage.rs`, `cache.rs`, `storage/postgres/lineage.rs`).
    CompactedReadable,
    PromotionUnnoticed,
    // The watch cache.
    EventLost,
    DeletionKept,
    WokenBeforeAppended,
    CatchUpSkipped,
    ReloadKeepsLogs,
    FloorIgnored,
    StaleRead,
    ReadTooEarly,
    WrongSnapshot,
    // Lists and watches.
    PageOverlaps,
    PagesOfTwoStates,
    BookmarkTooEarly,
    LeavingUnnoticed,
    ResumedTooLate,
    // Preconditions of clients.
    UidIgnored,
    VersionIgnored,
    // Admission, authorization, controllers.
    NamespaceNotRequired,
    EndingUnnoticed,
    PolicySkipped,
    OldRights,
    RightNotRequired,
    RightNotConfirmed,
    NamespaceEndsEarly,
    // Deletions (`api/src/deletion.rs`, `api/src/verbs/deletecollection.rs`, `controllers/garbage/collect.rs`).
    FinalizerIgnored,
    GraceIgnored,
    OwnerGoesFirst,
    ReferencesKept,
    DependentForgotten,
    CollectionPassesOver,
    CollectionTooWide,
    // Services (`api/src/services.rs`).
    ClaimNotRequired,
    ClaimTakenTwice,
    ClaimDroppedEarly,
    ClaimKept,
    // The answer (`storage/writer.rs`).
    RefusedAfterCommit,
}

impl Bug {
    pub const ALL: [Self; 51] = [
        Self::StaleUpdate,
        Self::RequirementIgnored,
        Self::ConfigurationIgnored,
        Self::FenceIgnored,
        Self::HalfAGroup,
        Self::CountedTwice,
        Self::NotCounted,
        Self::FailoverForgotten,
        Self::AnsweredBeforeVisible,
        Self::AnsweredBeforeSync,
        Self::SyncCoversTooMuch,
        Self::DirectoryNotSynced,
        Self::KeysNotSynced,
        Self::CommitNotSynced,
        Self::CompactedReadable,
        Self::PromotionUnnoticed,
        Self::EventLost,
        Self::DeletionKept,
        Self::WokenBeforeAppended,
        Self::CatchUpSkipped,
        Self::ReloadKeepsLogs,
        Self::FloorIgnored,
        Self::StaleRead,
        Self::ReadTooEarly,
        Self::WrongSnapshot,
        Self::PageOverlaps,
        Self::PagesOfTwoStates,
        Self::BookmarkTooEarly,
        Self::LeavingUnnoticed,
        Self::ResumedTooLate,
        Self::UidIgnored,
        Self::VersionIgnored,
        Self::NamespaceNotRequired,
        Self::EndingUnnoticed,
        Self::PolicySkipped,
        Self::OldRights,
        Self::RightNotRequired,
        Self::RightNotConfirmed,
        Self::NamespaceEndsEarly,
        Self::FinalizerIgnored,
        Self::GraceIgnored,
        Self::OwnerGoesFirst,
        Self::ReferencesKept,
        Self::DependentForgotten,
        Self::CollectionPassesOver,
        Self::CollectionTooWide,
        Self::ClaimNotRequired,
        Self::ClaimTakenTwice,
        Self::ClaimDroppedEarly,
        Self::ClaimKept,
        Self::RefusedAfterCommit,
    ];
}

/// Whether the bug is planted, and strikes this time.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub const fn strikes(_: Bug) -> bool {
    false
}

/// Whether the bug is planted, and strikes this time.
#[cfg(feature = "failpoints")]
#[expect(clippy::disallowed_methods, reason = "no release has it")]
pub fn strikes(bug: Bug) -> bool {
    use std::sync::LazyLock;

    static PLANTED: LazyLock<Option<(Bug, u32)>> = LazyLock::new(|| {
        let text = std::env::var("ROWPLANE_BUG").ok()?;
        let (name, one_in) = text.split_once('/').unwrap_or((&text, "1"));
        let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
        let bug = bug.unwrap_or_else(|| panic!("ROWPLANE_BUG names no bug: {name}"));
        Some((bug, one_in.parse().expect("ROWPLANE_BUG has a number after its slash")))
    });
    PLANTED.is_some_and(|(planted, one_in)| planted == bug && rand::random_ratio(1, one_in))
}
