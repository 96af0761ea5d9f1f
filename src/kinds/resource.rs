pub mod device_class;
pub mod device_taint_rule;
pub mod name;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_slice;
pub mod shared;
pub mod taint;
