pub mod storage_version_migration;
