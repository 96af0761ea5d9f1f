//! The service Maintenance.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::mpsc;
use tonic::Status;

use crate::engine::{Etcd, NoteWrite};
use crate::wire::exchange::{Answers, Caller};
use crate::wire::messages::{
    AlarmAction, AlarmMember, AlarmRequest, AlarmResponse, AlarmType, DefragmentRequest, DefragmentResponse,
    DowngradeAction, DowngradeInfo, DowngradeRequest, DowngradeResponse, HashKvRequest, HashKvResponse,
    HashRequest, HashResponse, MoveLeaderRequest, MoveLeaderResponse, SnapshotRequest, SnapshotResponse,
    StatusRequest, StatusResponse,
};
use crate::wire::server::Server;
use crate::wire::snapshot;

/// The names of notes of alarms: member and number of the alarm follow.
const ALARMS: &str = "alarm/";
/// The bytes of a snapshot that are in one message.
const BLOB: u64 = 32 << 10;
/// The bytes of the checksum at the end of a snapshot.
const CHECKSUM: u64 = 32;
/// The parts that wait for a client.
const PARTS_AHEAD: usize = 4;

impl Server {
    pub(in crate::wire) async fn status(
        &self,
        caller: &Caller,
        _: StatusRequest,
    ) -> Result<StatusResponse, Status> {
        let etcd = self.etcd().await?;
        self.who(etcd, caller)?;
        let (numbers, header) = (etcd.status_numbers().await?, etcd.newest_header());
        let version = &self.options().version;
        let db_size = numbers.db_size.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(StatusResponse {
            version: version.clone(),
            db_size,
            db_size_in_use: db_size,
            db_size_quota: self.options().quota.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            // All servers are equal, and each one answers for itself.
            leader: header.member_id,
            raft_index: numbers.sequence,
            raft_applied_index: numbers.sequence,
            raft_term: header.raft_term,
            errors: self.alarms(etcd).into_iter().map(|alarm| shown(&alarm)).collect(),
            is_learner: false,
            storage_version: storage_version(version),
            downgrade_info: Some(DowngradeInfo::default()),
            header: Some(header),
        })
    }

    /// Alarms that are on, in the order of members.
    fn alarms(&self, etcd: &Etcd) -> BTreeSet<(u64, i32)> {
        let notes = etcd.known_notes(ALARMS);
        notes.iter().filter_map(|(name, _)| read_alarm(name)).collect()
    }

    /// Refuses a call of KV or Lease while an alarm forbids it.
    pub(in crate::wire) async fn check_alarms(&self, etcd: &Etcd, writes: Writes) -> Result<(), Status> {
        let alarms = self.alarms(etcd);
        let is_on = |alarm: AlarmType| alarms.iter().any(|(_, on)| *on == alarm as i32);
        if is_on(AlarmType::Corrupt) {
            return Err(Status::data_loss("etcdserver: corrupt cluster"));
        }
        if writes == Writes::More && (is_on(AlarmType::NoSpace) || self.is_full(etcd).await?) {
            return Err(Status::resource_exhausted("etcdserver: mvcc: database space exceeded"));
        }
        Ok(())
    }

    /// Whether the store has more bytes than the quota allows. If so, the alarm is raised.
    async fn is_full(&self, etcd: &Etcd) -> Result<bool, Status> {
        let Some(quota) = self.options().quota else { return Ok(false) };
        let size = self.size(etcd).await?;
        if size <= quota {
            return Ok(false);
        }
        self.set_alarm(etcd, (etcd.newest_header().member_id, AlarmType::NoSpace as i32), true).await?;
        Ok(true)
    }

    /// Sets an alarm, or takes it back. Returns whether that changed anything.
    async fn set_alarm(&self, etcd: &Etcd, alarm: (u64, i32), on: bool) -> Result<bool, Status> {
        let name: Arc<str> = format!("{ALARMS}{}/{}", alarm.0, alarm.1).into();
        loop {
            let seen = etcd.notes(&name).await?.into_iter().find(|(found, _)| *found == name);
            if seen.is_some() == on {
                return Ok(false);
            }
            let seen = seen.map(|(_, note)| note.sequence);
            let write = NoteWrite { name: name.clone(), seen, value: on.then(Bytes::new) };
            if etcd.write_notes(vec![write]).await? {
                return Ok(true);
            }
        }
    }

    pub(in crate::wire) async fn alarm(
        &self,
        caller: &Caller,
        request: AlarmRequest,
    ) -> Result<AlarmResponse, Status> {
        let etcd = self.etcd().await?;
        match AlarmAction::try_from(request.action) {
            Ok(AlarmAction::Get) => drop(self.who(etcd, caller)?),
            _ => self.require_root(etcd, caller)?,
        }
        let AlarmRequest { action, member_id, alarm } = request;
        let is_known = [AlarmType::NoSpace, AlarmType::Corrupt].iter().any(|known| *known as i32 == alarm);
        let changed = match AlarmAction::try_from(action) {
            Ok(AlarmAction::Get) => {
                let all = self.alarms(etcd).into_iter();
                all.filter(|(_, on)| alarm == AlarmType::None as i32 || *on == alarm).collect()
            }
            Ok(AlarmAction::Activate) if is_known => {
                self.set_alarm(etcd, (member_id, alarm), true).await?;
                vec![(member_id, alarm)]
            }
            Ok(AlarmAction::Deactivate) if is_known => {
                match self.set_alarm(etcd, (member_id, alarm), false).await? {
                    true => vec![(member_id, alarm)],
                    false => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        let alarms = changed.into_iter().map(|(member_id, alarm)| AlarmMember { member_id, alarm }).collect();
        Ok(AlarmResponse { header: Some(etcd.newest_header()), alarms })
    }

    pub(in crate::wire) async fn defragment(
        &self,
        caller: &Caller,
        _: DefragmentRequest,
    ) -> Result<DefragmentResponse, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        etcd.defragment().await?;
        Ok(DefragmentResponse { header: Some(etcd.newest_header()) })
    }

    pub(in crate::wire) async fn hash(
        &self,
        caller: &Caller,
        _: HashRequest,
    ) -> Result<HashResponse, Status> {
        let HashKvResponse { header, hash, .. } = self.hash_kv(caller, HashKvRequest::default()).await?;
        Ok(HashResponse { header, hash })
    }

    /// One at a time, since all history is read.
    pub(in crate::wire) async fn hash_kv(
        &self,
        caller: &Caller,
        request: HashKvRequest,
    ) -> Result<HashKvResponse, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        let _turn = self.turns().lock().await;
        Ok(etcd.hash_kv(request).await?)
    }

    /// A file of bbolt, written to its end before its first part is sent.
    pub(in crate::wire) async fn snapshot(
        &self,
        caller: &Caller,
        _: SnapshotRequest,
    ) -> Result<Answers<SnapshotResponse>, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        let turn = self.turns().clone().lock_owned().await;
        let rows = etcd.snapshot().await?;
        let (scratch, version) = (self.options().scratch.clone(), storage_version(&self.options().version));
        let (parts, sent) = mpsc::channel(PARTS_AHEAD);
        tokio::task::spawn_blocking(move || {
            let failed =
                |error: std::io::Error| Status::internal(format!("the snapshot cannot be written: {error}"));
            let written = snapshot::write(&rows, &scratch, &version);
            match written.and_then(|file| send(file, &version, &parts)) {
                Ok(()) => {}
                Err(error) => drop(parts.blocking_send(Err(failed(error)))),
            }
            drop(turn);
        });
        Ok(stream::unfold(sent, async |mut sent| Some((sent.recv().await?, sent))).boxed())
    }

    pub(in crate::wire) async fn move_leader(
        &self,
        caller: &Caller,
        request: MoveLeaderRequest,
    ) -> Result<MoveLeaderResponse, Status> {
        let etcd = self.etcd().await?;
        self.require_root(etcd, caller)?;
        let header = etcd.newest_header();
        match request.target_id == header.member_id {
            true => Ok(MoveLeaderResponse { header: Some(header) }),
            false => Err(Status::failed_precondition("etcdserver: bad leader transferee")),
        }
    }

    pub(in crate::wire) async fn downgrade(
        &self,
        caller: &Caller,
        request: DowngradeRequest,
    ) -> Result<DowngradeResponse, Status> {
        self.require_root(self.etcd().await?, caller)?;
        Err(match DowngradeAction::try_from(request.action) {
            Ok(DowngradeAction::Cancel) => {
                Status::failed_precondition("etcdserver: no inflight downgrade job")
            }
            _ => Status::invalid_argument("etcdserver: invalid downgrade target version"),
        })
    }
}

/// The effect of a call on the store's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Writes {
    No,
    More,
}

/// Sends a file in parts, the checksum at its end alone.
fn send(
    mut file: File,
    version: &str,
    parts: &mpsc::Sender<Result<SnapshotResponse, Status>>,
) -> std::io::Result<()> {
    let mut left = file.metadata()?.len();
    file.seek(SeekFrom::Start(0))?;
    while left > 0 {
        let length = match left.checked_sub(CHECKSUM) {
            None | Some(0) => left,
            Some(before) => before.min(BLOB),
        };
        let mut blob = vec![0; length as usize];
        file.read_exact(&mut blob)?;
        left -= length;
        let part = SnapshotResponse {
            header: None,
            remaining_bytes: left,
            blob: blob.into(),
            version: version.to_owned(),
        };
        if parts.blocking_send(Ok(part)).is_err() {
            // Nobody wants the rest.
            return Ok(());
        }
    }
    Ok(())
}

fn read_alarm(name: &str) -> Option<(u64, i32)> {
    let (member, alarm) = name.strip_prefix(ALARMS)?.split_once('/')?;
    Some((member.parse().ok()?, alarm.parse().ok()?))
}

/// An alarm as Go prints it.
fn shown((member, alarm): &(u64, i32)) -> String {
    let name = if *alarm == AlarmType::NoSpace as i32 { "NOSPACE" } else { "CORRUPT" };
    format!("memberID:{member} alarm:{name} ")
}

/// The version of the store's form: the first of its minor one.
pub(in crate::wire) fn storage_version(version: &str) -> String {
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    format!("{minor}.0")
}
