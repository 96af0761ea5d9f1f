//! ClusterRoleBinding: its rules are in `shared`.

use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::definition::cluster;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::Strategy;
use crate::kinds::behavior::warnings::KindWarnings;
use crate::kinds::rbac::binding;
use crate::kinds::rbac::shared::{create_cluster_binding, update_cluster_binding};

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("clusterrolebindings", "ClusterRoleBinding").creates_on_update(),
    strategy: Strategy { names: NameFormat::PathSegment, ..Strategy::PLAIN },
    rules: Rules::new(create_cluster_binding, update_cluster_binding),
    warnings: KindWarnings::NONE,
    columns: &binding::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};
