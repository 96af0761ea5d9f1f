//! ClusterRole: its rules are in `shared`.

use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::columns::DEFAULT;
use crate::kinds::behavior::definition::cluster;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::Strategy;
use crate::kinds::behavior::warnings::KindWarnings;
use crate::kinds::rbac::shared::cluster_role;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("clusterroles", "ClusterRole").creates_on_update(),
    strategy: Strategy { names: NameFormat::PathSegment, ..Strategy::PLAIN },
    rules: Rules::timeless(cluster_role),
    warnings: KindWarnings::NONE,
    columns: &DEFAULT,
    fields: SelectableFields::metadata,
    other_version: None,
};
