pub mod conversion;
pub mod event;
