//! A store directory written by format version 1 opens for ever, and holds what it held.
//!
//! `SHARESTATE_WRITE_GOLDEN=1 cargo test --all-features --test golden_store` writes the directory of
//! a new format version; those of older ones are never written again.
#![cfg(feature = "rocksdb")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::{
    AckRange, AckType, Clock, DeliveryState, Marker, Options, Outcome, PendingFilter, Rejection,
    ShareStore, Stage, StoreError,
};
use support::{batch, copy_dir, key, write};

#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 4 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.reserve_bytes = 0;
    options.clock = Arc::new(Frozen);
    options
}

/// Everything a row holds, in a form of this test's own.
fn rows(store: &ShareStore) -> String {
    let page = store.blocking().list(None, None, 100).expect("list");
    let rows = page.partitions.iter().map(|(key, row)| {
        let numbers = [
            i64::from(row.state_epoch),
            i64::from(row.leader_epoch),
            i64::from(row.leader_fence),
            row.start_offset,
            row.init_start_offset,
            i64::from(row.delivery_complete_count),
            i64::from(row.snapshot_epoch),
            row.create_time_ms,
            row.write_time_ms,
        ];
        let batches = row.batches.iter().map(|batch| {
            let (state, count) = (batch.delivery_state.0, batch.delivery_count);
            format!("{}-{} {state} {count}", batch.first_offset, batch.last_offset)
        });
        let pending = row.pending.iter().map(|ack| {
            let call = &ack.call;
            format!(
                "{}-{} {:?} {} {} {} by {} {} {} {} {} at {}",
                ack.first_offset,
                ack.last_offset,
                ack.ack_type,
                ack.commit_target.0,
                ack.abort_target.0,
                ack.delivery_count,
                call.producer_id,
                call.producer_epoch,
                call.two_phase,
                call.transactional_id,
                call.member_id,
                call.lsn,
            )
        });
        let batches = batches.collect::<Vec<_>>().join(", ");
        let pending = pending.collect::<Vec<_>>().join(", ");
        format!("{key} {numbers:?} batches [{batches}] pending [{pending}]\n")
    });
    rows.collect()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1")
}

fn stage(producer_epoch: i16, first: i64) -> Stage {
    Stage {
        key: key("g:1", 0),
        state_epoch: 1,
        leader_epoch: 4,
        producer_id: 77,
        producer_epoch,
        two_phase: producer_epoch == 1,
        transaction_version: 2,
        transactional_id: "transaction".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 9,
        acks: vec![AckRange {
            first_offset: first,
            last_offset: first + 4,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    }
}

fn marker(producer_epoch: i16, outcome: Outcome) -> Marker {
    let coordinator_epoch = 3;
    Marker { producer_id: 77, producer_epoch, coordinator_epoch, outcome, transaction_version: 2 }
}

/// Every kind of entry but an expiry, some in the snapshot and some in the log behind it.
fn make(path: &Path) -> String {
    let store = ShareStore::open(path, &options()).expect("open");
    let blocking = store.blocking();
    for (group, partition) in [("g:1", 0), ("g:1", 1), ("h", 0)] {
        blocking.initialize(&key(group, partition), 1, 0).expect("initialize");
    }
    blocking.read(&key("g:1", 0), 4).expect("read");
    let mut first = write(&[batch(0, 9, 2, 1), batch(10, 12, 4, 5), batch(13, 20, 0, 2)]);
    first.leader_epoch = 4;
    blocking.write(&key("g:1", 0), first).expect("write");
    blocking.stage(stage(0, 100)).expect("stage");
    blocking.marker(marker(1, Outcome::Commit)).expect("marker");
    blocking.stage(stage(1, 200)).expect("stage");
    blocking.checkpoint().expect("checkpoint");
    for n in 0..60 {
        blocking.write(&key("g:1", 1), write(&[batch(n * 3, n * 3, 2, 1)])).expect("write");
    }
    blocking.checkpoint().expect("checkpoint");
    blocking.delete(&key("h", 0)).expect("delete");
    blocking.stage(stage(2, 300)).expect("stage");
    blocking.force_resolve(77, 2, Outcome::Abort).expect("resolve");
    let imported = blocking.read(&key("g:1", 1), 0).expect("read").partition;
    blocking.import(&key("i", 7), imported, false).expect("import");
    let rows = rows(&store);
    let image = path.with_extension("image");
    copy_dir(path, &image);
    drop((blocking, store));
    fs::remove_dir_all(path).expect("remove");
    fs::rename(image, path).expect("rename");
    rows
}

#[test]
fn a_store_of_format_version_1_opens_and_holds_what_it_held() {
    if std::env::var_os("SHARESTATE_WRITE_GOLDEN").is_some() {
        let rows = make(&golden());
        fs::write(golden().join("rows.txt"), rows).expect("write");
        for entry in fs::read_dir(golden().join("snapshot")).expect("list") {
            let path = entry.expect("entry").path();
            let name = path.file_name().expect("name").to_string_lossy().into_owned();
            if name.starts_with("LOG") {
                fs::remove_file(path).expect("remove"); // what RocksDB tells of itself
            }
        }
    }
    let dir = tempfile::tempdir().expect("directory");
    copy_dir(&golden(), dir.path());
    let expected = fs::read_to_string(dir.path().join("rows.txt")).expect("rows");
    let store = ShareStore::open(dir.path(), &options()).expect("opens");
    assert_eq!(rows(&store), expected);
    assert!(store.recovery().snapshot_lsn > 0 && store.recovery().replayed > 0);

    let blocking = store.blocking();
    let pending = blocking.pending(PendingFilter::default()).expect("pending");
    assert_eq!(pending.len(), 1);
    assert_eq!((pending[0].producer_epoch, pending[0].two_phase), (1, true));
    assert!(pending[0].orphaned);
    // What is remembered of the producer still refuses a late stage, and the marker still resolves.
    let late = blocking.stage(stage(0, 400)).expect_err("over");
    assert!(matches!(late, StoreError::Rejected(Rejection::InvalidProducerEpoch { .. })));
    let resolved = blocking.marker(marker(2, Outcome::Commit)).expect("marker");
    assert_eq!(resolved.partitions, [(key("g:1", 0), vec![(200, 204)])]);
}
