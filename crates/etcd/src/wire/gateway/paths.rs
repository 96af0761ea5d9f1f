//! Paths of the gateway, with the methods that they call.

/// Paths without `/v3/`, by service.
const PATHS: [(&str, &[(&str, &str)]); 8] = [
    (
        "etcdserverpb.KV",
        &[
            ("kv/range", "Range"),
            ("kv/put", "Put"),
            ("kv/deleterange", "DeleteRange"),
            ("kv/txn", "Txn"),
            ("kv/compaction", "Compact"),
        ],
    ),
    ("etcdserverpb.Watch", &[("watch", "Watch")]),
    (
        "etcdserverpb.Lease",
        &[
            ("lease/grant", "LeaseGrant"),
            ("lease/revoke", "LeaseRevoke"),
            ("kv/lease/revoke", "LeaseRevoke"),
            ("lease/keepalive", "LeaseKeepAlive"),
            ("lease/timetolive", "LeaseTimeToLive"),
            ("kv/lease/timetolive", "LeaseTimeToLive"),
            ("lease/leases", "LeaseLeases"),
            ("kv/lease/leases", "LeaseLeases"),
        ],
    ),
    (
        "etcdserverpb.Cluster",
        &[
            ("cluster/member/add", "MemberAdd"),
            ("cluster/member/remove", "MemberRemove"),
            ("cluster/member/update", "MemberUpdate"),
            ("cluster/member/list", "MemberList"),
            ("cluster/member/promote", "MemberPromote"),
        ],
    ),
    (
        "etcdserverpb.Maintenance",
        &[
            ("maintenance/alarm", "Alarm"),
            ("maintenance/status", "Status"),
            ("maintenance/defragment", "Defragment"),
            ("maintenance/hash", "Hash"),
            ("maintenance/hashkv", "HashKV"),
            ("maintenance/snapshot", "Snapshot"),
            ("maintenance/transfer-leadership", "MoveLeader"),
            ("maintenance/downgrade", "Downgrade"),
        ],
    ),
    (
        "etcdserverpb.Auth",
        &[
            ("auth/enable", "AuthEnable"),
            ("auth/disable", "AuthDisable"),
            ("auth/status", "AuthStatus"),
            ("auth/authenticate", "Authenticate"),
            ("auth/user/add", "UserAdd"),
            ("auth/user/get", "UserGet"),
            ("auth/user/list", "UserList"),
            ("auth/user/delete", "UserDelete"),
            ("auth/user/changepw", "UserChangePassword"),
            ("auth/user/grant", "UserGrantRole"),
            ("auth/user/revoke", "UserRevokeRole"),
            ("auth/role/add", "RoleAdd"),
            ("auth/role/get", "RoleGet"),
            ("auth/role/list", "RoleList"),
            ("auth/role/delete", "RoleDelete"),
            ("auth/role/grant", "RoleGrantPermission"),
            ("auth/role/revoke", "RoleRevokePermission"),
        ],
    ),
    ("v3lockpb.Lock", &[("lock/lock", "Lock"), ("lock/unlock", "Unlock")]),
    (
        "v3electionpb.Election",
        &[
            ("election/campaign", "Campaign"),
            ("election/proclaim", "Proclaim"),
            ("election/leader", "Leader"),
            ("election/observe", "Observe"),
            ("election/resign", "Resign"),
        ],
    ),
];

/// The method of a path, as gRPC names it; `None` if the path is none of the gateway.
pub fn method(path: &str) -> Option<String> {
    let path = path.strip_prefix("/v3/")?;
    let mut all =
        PATHS.iter().flat_map(|(service, methods)| methods.iter().map(move |named| (service, named)));
    let (service, (_, method)) = all.find(|(_, (known, _))| *known == path)?;
    Some(format!("{service}/{method}"))
}
