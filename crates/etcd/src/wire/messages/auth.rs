//! Users, roles and tokens.

use bytes::Bytes;

use super::{ResponseHeader, enumeration, messages};

enumeration! {
    PermissionType { Read = 0 as "READ", Write = 1 as "WRITE", ReadWrite = 2 as "READWRITE" }
}

messages! {
    AuthEnableRequest {}

    AuthEnableResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthDisableRequest {}

    AuthDisableResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthStatusRequest {}

    AuthStatusResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(bool, tag = "2")] enabled: bool,
        #[prost(uint64, tag = "3")] auth_revision as "authRevision": u64,
    }

    AuthenticateRequest {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] password: String,
    }

    AuthenticateResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(string, tag = "2")] token: String,
    }

    AuthUserAddRequest {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] password: String,
        #[prost(message, optional, tag = "3")] options: Option<UserAddOptions>,
        #[prost(string, tag = "4")] hashed_password as "hashedPassword": String,
    }

    AuthUserAddResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthUserGetRequest {
        #[prost(string, tag = "1")] name: String,
    }

    AuthUserGetResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(string, repeated, tag = "2")] roles: Vec<String>,
    }

    AuthUserListRequest {}

    AuthUserListResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(string, repeated, tag = "2")] users: Vec<String>,
    }

    AuthUserDeleteRequest {
        #[prost(string, tag = "1")] name: String,
    }

    AuthUserDeleteResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthUserChangePasswordRequest {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] password: String,
        #[prost(string, tag = "3")] hashed_password as "hashedPassword": String,
    }

    AuthUserChangePasswordResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthUserGrantRoleRequest {
        #[prost(string, tag = "1")] user: String,
        #[prost(string, tag = "2")] role: String,
    }

    AuthUserGrantRoleResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthUserRevokeRoleRequest {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] role: String,
    }

    AuthUserRevokeRoleResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthRoleAddRequest {
        #[prost(string, tag = "1")] name: String,
    }

    AuthRoleAddResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthRoleGetRequest {
        #[prost(string, tag = "1")] role: String,
    }

    AuthRoleGetResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(message, repeated, tag = "2")] perm: Vec<Permission>,
    }

    AuthRoleListRequest {}

    AuthRoleListResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
        #[prost(string, repeated, tag = "2")] roles: Vec<String>,
    }

    AuthRoleDeleteRequest {
        #[prost(string, tag = "1")] role: String,
    }

    AuthRoleDeleteResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthRoleGrantPermissionRequest {
        #[prost(string, tag = "1")] name: String,
        #[prost(message, optional, tag = "2")] perm: Option<Permission>,
    }

    AuthRoleGrantPermissionResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    AuthRoleRevokePermissionRequest {
        #[prost(string, tag = "1")] role: String,
        #[prost(bytes = "bytes", tag = "2")] key: Bytes,
        #[prost(bytes = "bytes", tag = "3")] range_end: Bytes,
    }

    AuthRoleRevokePermissionResponse {
        #[prost(message, optional, tag = "1")] header: Option<ResponseHeader>,
    }

    UserAddOptions {
        #[prost(bool, tag = "1")] no_password: bool,
    }

    Permission {
        #[prost(int32, tag = "1")] perm_type as "permType" in PermissionType: i32,
        #[prost(bytes = "bytes", tag = "2")] key: Bytes,
        #[prost(bytes = "bytes", tag = "3")] range_end: Bytes,
    }

    /// A user as etcd stores him.
    User {
        #[prost(bytes = "bytes", tag = "1")] name: Bytes,
        /// The hash of the password.
        #[prost(bytes = "bytes", tag = "2")] password: Bytes,
        #[prost(string, repeated, tag = "3")] roles: Vec<String>,
        #[prost(message, optional, tag = "4")] options: Option<UserAddOptions>,
    }

    /// A role as etcd stores it.
    Role {
        #[prost(bytes = "bytes", tag = "1")] name: Bytes,
        #[prost(message, repeated, tag = "2")] key_permission as "keyPermission": Vec<Permission>,
    }
}
