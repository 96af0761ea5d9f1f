pub mod conversion;
pub mod horizontal_pod_autoscaler;
pub mod scale;
