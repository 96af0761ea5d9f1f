//! Members, alarms, snapshots, and what is refused.

use rowplane_etcd::wire::messages::{SnapshotRequest, SnapshotResponse};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::support::{call, post, refusal, server, server_with};

#[tokio::test]
async fn etcd_41_status_and_members_are_of_one_leader() {
    let server = server();
    let status = post(&server, "maintenance/status", json!({})).await;
    assert_eq!((&status["version"], &status["storageVersion"]), (&json!("3.7.1"), &json!("3.7.0")));
    assert_eq!(status["leader"], status["header"]["member_id"]);
    assert_eq!(status["raftIndex"], status["raftAppliedIndex"]);
    let listed = post(&server, "cluster/member/list", json!({})).await;
    let urls = json!(["http://one:2379"]);
    let member = json!({"ID": status["leader"], "name": "one", "peerURLs": urls, "clientURLs": urls});
    assert_eq!(listed["members"], json!([member]));
    post(&server, "maintenance/defragment", json!({})).await;
    let hash = post(&server, "maintenance/hashkv", json!({})).await;
    assert_eq!(hash["hash_revision"], "1");
}

#[tokio::test]
async fn etcd_42_membership_and_downgrades_are_refused() {
    let server = server();
    let unimplemented = (12, "rowplane: membership is the database's".to_owned());
    assert_eq!(
        refusal(&server, "cluster/member/add", json!({"peerURLs": ["http://x:1"]}), "").await,
        unimplemented
    );
    let unknown = (5, "etcdserver: member not found".to_owned());
    assert_eq!(refusal(&server, "cluster/member/remove", json!({"ID": 9}), "").await, unknown);
    let downgrade =
        async |action| refusal(&server, "maintenance/downgrade", json!({"action": action}), "").await;
    assert_eq!(downgrade("ENABLE").await, (3, "etcdserver: invalid downgrade target version".to_owned()));
    assert_eq!(downgrade("CANCEL").await, (9, "etcdserver: no inflight downgrade job".to_owned()));
    let moved = refusal(&server, "maintenance/transfer-leadership", json!({"targetID": 5}), "").await;
    assert_eq!(moved, (9, "etcdserver: bad leader transferee".to_owned()));
}

#[tokio::test]
async fn alarms_stop_what_would_grow() {
    let server = server();
    post(&server, "kv/put", json!({"key": "YQ=="})).await;
    let alarm = json!({"memberID": "5", "alarm": "NOSPACE"});
    let ask = async |action| {
        let request = json!({"action": action, "memberID": 5, "alarm": "NOSPACE"});
        post(&server, "maintenance/alarm", request).await["alarms"].clone()
    };
    assert_eq!(ask("ACTIVATE").await, json!([alarm]));
    let full = (8, "etcdserver: mvcc: database space exceeded".to_owned());
    assert_eq!(refusal(&server, "kv/put", json!({"key": "YQ=="}), "").await, full);
    assert_eq!(refusal(&server, "lease/grant", json!({"TTL": 5}), "").await, full);
    post(&server, "kv/deleterange", json!({"key": "YQ=="})).await;
    assert_eq!(
        post(&server, "maintenance/status", json!({})).await["errors"],
        json!(["memberID:5 alarm:NOSPACE "])
    );
    assert_eq!(ask("DEACTIVATE").await, json!([alarm]));
    assert_eq!(ask("DEACTIVATE").await, json!(null));
    post(&server, "kv/put", json!({"key": "YQ=="})).await;
    let corrupt = json!({"action": "ACTIVATE", "memberID": 5, "alarm": "CORRUPT"});
    post(&server, "maintenance/alarm", corrupt).await;
    let refused = refusal(&server, "kv/range", json!({"key": "YQ=="}), "").await;
    assert_eq!(refused, (15, "etcdserver: corrupt cluster".to_owned()));
}

#[tokio::test]
async fn a_quota_is_none_for_a_store_without_a_size() {
    let server = server_with(Some(1));
    post(&server, "kv/put", json!({"key": "YQ=="})).await;
}

#[tokio::test]
async fn etcd_43_a_snapshot_ends_with_its_checksum() {
    let server = server();
    for key in ["YQ==", "Yg=="] {
        post(&server, "kv/put", json!({"key": key, "value": "Yg=="})).await;
    }
    let method = "etcdserverpb.Maintenance/Snapshot";
    let (parts, status) = call::<_, SnapshotResponse>(&server, method, &SnapshotRequest::default()).await;
    assert_eq!(status.0, 0);
    let (last, before) = parts.split_last().expect("parts");
    let file: Vec<u8> = before.iter().flat_map(|part| part.blob.to_vec()).collect();
    assert_eq!((file.len() % 512, last.remaining_bytes, last.version.as_str()), (0, 0, "3.7.0"));
    assert_eq!(*last.blob, *Sha256::digest(&file));
}
