pub mod storage_version;
