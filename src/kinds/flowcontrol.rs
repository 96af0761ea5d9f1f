pub mod flow_schema;
pub mod priority_level_configuration;
pub mod shared;
