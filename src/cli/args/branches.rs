//! The limits of branches.

use clap::Args;

use crate::server::config::BranchLimits;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Branch flags")]
pub struct BranchLimitArgs {
    /// The maximum number of branches of the cluster, those of branches included; 0 allows none
    #[arg(long, value_name = "BRANCHES", default_value_t = BranchLimits::default().most)]
    max_branches: usize,

    /// The maximum number of bytes that the objects of a branch take beyond those that it was made from
    #[arg(long, value_name = "BYTES", default_value_t = BranchLimits::default().most_bytes)]
    max_branch_bytes: u64,
}

impl BranchLimitArgs {
    pub fn into_config(self) -> BranchLimits {
        // More could not be counted, and would not fit into any memory.
        BranchLimits { most: self.max_branches.min(100_000), most_bytes: self.max_branch_bytes }
    }
}
