//! The methods of etcd's API, by their names in gRPC.

use futures_util::future::BoxFuture;

use super::exchange::{Exchange, Response, Shape};
use super::server::Server;

/// Calls a method; the call is given back if there is no such method.
pub fn call<E: Exchange>(server: &Server, method: &str, call: E) -> Result<BoxFuture<'static, Response>, E> {
    let server = server.clone();
    macro_rules! unary {
        ($method:ident) => {
            call.unary(async move |caller, request| server.$method(&caller, request).await)
        };
    }
    macro_rules! answers {
        ($method:ident) => {
            call.answers(async move |caller, request| server.$method(&caller, request).await)
        };
    }
    macro_rules! streams {
        ($method:ident) => {
            call.exchange(Shape::Streams, async move |caller, requests| {
                server.$method(caller, requests).await
            })
        };
    }
    Ok(match method {
        "etcdserverpb.KV/Range" => unary!(range),
        "etcdserverpb.KV/RangeStream" => answers!(range_stream),
        "etcdserverpb.KV/Put" => unary!(put),
        "etcdserverpb.KV/DeleteRange" => unary!(delete_range),
        "etcdserverpb.KV/Txn" => unary!(txn),
        "etcdserverpb.KV/Compact" => unary!(compact),
        "etcdserverpb.Watch/Watch" => streams!(watch),
        "etcdserverpb.Lease/LeaseGrant" => unary!(lease_grant),
        "etcdserverpb.Lease/LeaseRevoke" => unary!(lease_revoke),
        "etcdserverpb.Lease/LeaseKeepAlive" => streams!(lease_keep_alive),
        "etcdserverpb.Lease/LeaseTimeToLive" => unary!(lease_time_to_live),
        "etcdserverpb.Lease/LeaseLeases" => unary!(lease_leases),
        "etcdserverpb.Cluster/MemberList" => unary!(member_list),
        "etcdserverpb.Cluster/MemberAdd" => unary!(member_add),
        "etcdserverpb.Cluster/MemberRemove" => unary!(member_remove),
        "etcdserverpb.Cluster/MemberUpdate" => unary!(member_update),
        "etcdserverpb.Cluster/MemberPromote" => unary!(member_promote),
        "etcdserverpb.Maintenance/Alarm" => unary!(alarm),
        "etcdserverpb.Maintenance/Status" => unary!(status),
        "etcdserverpb.Maintenance/Defragment" => unary!(defragment),
        "etcdserverpb.Maintenance/Hash" => unary!(hash),
        "etcdserverpb.Maintenance/HashKV" => unary!(hash_kv),
        "etcdserverpb.Maintenance/Snapshot" => answers!(snapshot),
        "etcdserverpb.Maintenance/MoveLeader" => unary!(move_leader),
        "etcdserverpb.Maintenance/Downgrade" => unary!(downgrade),
        "etcdserverpb.Auth/AuthEnable" => unary!(auth_enable),
        "etcdserverpb.Auth/AuthDisable" => unary!(auth_disable),
        "etcdserverpb.Auth/AuthStatus" => unary!(auth_status),
        "etcdserverpb.Auth/Authenticate" => unary!(authenticate),
        "etcdserverpb.Auth/UserAdd" => unary!(user_add),
        "etcdserverpb.Auth/UserGet" => unary!(user_get),
        "etcdserverpb.Auth/UserList" => unary!(user_list),
        "etcdserverpb.Auth/UserDelete" => unary!(user_delete),
        "etcdserverpb.Auth/UserChangePassword" => unary!(user_change_password),
        "etcdserverpb.Auth/UserGrantRole" => unary!(user_grant_role),
        "etcdserverpb.Auth/UserRevokeRole" => unary!(user_revoke_role),
        "etcdserverpb.Auth/RoleAdd" => unary!(role_add),
        "etcdserverpb.Auth/RoleGet" => unary!(role_get),
        "etcdserverpb.Auth/RoleList" => unary!(role_list),
        "etcdserverpb.Auth/RoleDelete" => unary!(role_delete),
        "etcdserverpb.Auth/RoleGrantPermission" => unary!(role_grant_permission),
        "etcdserverpb.Auth/RoleRevokePermission" => unary!(role_revoke_permission),
        "v3lockpb.Lock/Lock" => unary!(lock),
        "v3lockpb.Lock/Unlock" => unary!(unlock),
        "v3electionpb.Election/Campaign" => unary!(campaign),
        "v3electionpb.Election/Proclaim" => unary!(proclaim),
        "v3electionpb.Election/Leader" => unary!(leader),
        "v3electionpb.Election/Observe" => answers!(observe),
        "v3electionpb.Election/Resign" => unary!(resign),
        _ => return Err(call),
    })
}
