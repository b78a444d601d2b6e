//! C: crashes, torn writes, checkpoints and replay.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{EIO, Fault, PageModel, Repeat, When};
use sharestate::log::{Scope, TailVerdict, scan};
use sharestate::model::State;
use sharestate::{ErrorClass, ShareStore, StoreError};

use super::disk::{Disk, ROOT, cut_at_every_call, submit, wait};
use super::real::state_of;
use super::*;

fn row(store: &ShareStore, partition: i32) -> Arc<Partition> {
    Arc::clone(&state_of(store).partitions[&key(partition)])
}

#[test]
fn c_1_a_stage_cut_from_power_is_pending_or_not_and_the_retry_converges() {
    let mut found = BTreeSet::new();
    let acks = || stage([accept(0, 4), reject(7, 9)]);
    let images = cut_at_every_call(
        |_| {},
        |store| store.blocking().stage(acks()).is_ok(),
        |store, answered, context| {
            let pending = row(store, 0).pending.len();
            assert!(pending == 0 || pending == 2, "{context}: all or nothing");
            assert!(!answered || pending == 2, "{context}: answered and lost");
            found.insert(pending);
            let staged = store.blocking().stage(acks()).expect("the retry");
            assert_eq!(staged.is_empty(), pending == 2, "{context}");
            assert_eq!(row(store, 0).pending.len(), 2, "{context}");
        },
    );
    println!("stage-crash-images={images}");
    assert_eq!(found, BTreeSet::from([0, 2]), "both are legal, and both were seen");
}

/// Stages so many ranges that the entry takes several sectors.
fn many_ranges() -> Stage {
    let acks = (0..100).map(|n| if n % 2 == 0 { accept(n, n) } else { reject(n, n) });
    on(1, of(200, stage(acks.collect::<Vec<_>>())))
}

/// A store with one open transaction, and the next one's stage and the first one's marker on their
/// way to the log in one frame. Answers whether both were answered with success.
fn stage_and_marker_in_one_frame(disk: &Disk, store: &ShareStore) -> bool {
    // Held up here, the store finds both behind what it is held up with.
    disk.clock.close();
    let any = key(2);
    let mut held = Box::pin(store.summary(&any));
    submit(&mut held);
    disk.clock.until_somebody_waits();
    let mut staging = Box::pin(store.stage(many_ranges()));
    let mut marking = Box::pin(store.marker(commit(0)));
    submit(&mut staging);
    submit(&mut marking);
    disk.clock.open();
    let _ = wait(held);
    let (staged, marked) = (wait(staging), wait(marking));
    assert_eq!(staged.is_ok(), marked.is_ok(), "one frame, one fate");
    staged.is_ok()
}

#[test]
fn c_2_a_torn_frame_of_a_stage_and_a_marker_applies_neither() {
    let (mut torn, mut found) = (0, BTreeSet::new());
    for call in 1_u64.. {
        let disk = Disk::new();
        let store = disk.started();
        store.blocking().stage(stage([accept(0, 4)])).expect("staged");
        disk.fs.crash_after(disk.fs.calls() + call);
        let answered = stage_and_marker_in_one_frame(&disk, &store);
        for seed in 0..40 {
            let image = disk.power_cut(PageModel::Random { seed, granularity: 512 }).open();
            let tail = image.recovery().tail.as_ref().expect("reopened");
            torn += usize::from(matches!(tail.verdict, TailVerdict::Torn(_)));
            let staged = !row(&image, 1).pending.is_empty();
            let resolved = row(&image, 0).pending.is_empty();
            assert_eq!(staged, resolved, "call {call}, seed {seed}: half a frame was applied");
            assert!(!answered || staged, "call {call}, seed {seed}: answered and lost");
            found.insert(staged);
        }
        if !disk.fs.is_crashed() {
            assert!(in_one_frame(&disk, &store), "the two entries were to share a frame");
            break;
        }
    }
    assert!(torn > 0, "no image had a torn frame");
    assert_eq!(found, BTreeSet::from([false, true]));
}

/// Whether the last two entries of the log stand in one frame.
fn in_one_frame(disk: &Disk, store: &ShareStore) -> bool {
    let (fs, wal) = (Arc::new(disk.fs.restart()), Path::new(ROOT).join("wal"));
    let mut frames = Vec::new();
    scan(fs, &wal, store.uuid(), 0, Scope::All, &mut |entry| -> Result<(), StoreError> {
        frames.push((entry.segment, entry.frame_offset));
        Ok(())
    })
    .expect("scanned");
    frames.len() == 6 && frames[4] == frames[5] && frames[3] != frames[4]
}

#[test]
fn c_3_after_a_failed_sync_nothing_is_acknowledged_until_a_recovery() {
    let disk = Disk::new();
    let store = disk.started();
    store.blocking().stage(stage([accept(0, 0)])).expect("staged");
    disk.fs.fail(Fault { when: When::Op(FsOp::SyncData), errno: EIO, repeat: Repeat::Once });
    let error = store.blocking().marker(commit(0)).expect_err("not durable");
    assert_eq!(error.class(), ErrorClass::Poisoned, "{error}");
    let durable = store.progress().durable_lsn;
    for _ in 0..3 {
        let error = store.blocking().stage(on(1, stage([accept(0, 0)]))).expect_err("poisoned");
        assert!(matches!(error, StoreError::Poisoned(_)), "{error}");
        assert!(store.blocking().marker(commit(0)).is_err());
    }
    assert_eq!(store.progress().durable_lsn, durable);
    for model in [PageModel::AllKept, PageModel::UnsyncedLost] {
        let again = disk.power_cut(model).open();
        again.blocking().marker(commit(0)).expect("taken");
        assert_eq!(row(&again, 0).batches, [batch(0, 0, 2, 1)], "{model:?}");
        assert_eq!(row(&again, 1).pending, [], "what was refused did not happen");
    }
}

#[test]
fn c_4_a_marker_beside_a_running_checkpoint_is_applied_once() {
    let disk = Disk::new();
    let store = disk.started();
    store.blocking().stage(stage([accept(0, 4)])).expect("staged");
    disk.checkpoints.close();
    let mut checkpoint = Box::pin(store.checkpoint());
    submit(&mut checkpoint);
    disk.checkpoints.until_somebody_waits();
    store.blocking().marker(commit(0)).expect("taken beside the checkpoint");
    let expected = state_of(&store);
    let unwritten = disk.power_cut(PageModel::UnsyncedLost);
    disk.checkpoints.open();
    assert_eq!(wait(checkpoint).expect("written"), 4, "as of before the marker");
    let written = disk.power_cut(PageModel::UnsyncedLost);
    for (image, snapshot_lsn, replayed) in [(unwritten, 0, 5), (written, 4, 1)] {
        let again = image.open();
        let report = again.recovery();
        assert_eq!((report.snapshot_lsn, report.replayed), (snapshot_lsn, replayed));
        assert_eq!(state_of(&again), expected);
        assert_eq!(row(&again, 0).delivery_complete_count, 5);
    }
}

#[test]
fn c_5_an_older_snapshot_and_the_log_that_was_kept_for_it_hold_the_same() {
    let disk = Disk::new();
    let store = disk.started();
    let fill = || {
        let filler: Vec<_> = (0..200).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
        for _ in 0..10 {
            store.blocking().write(&key(2), plain(filler.clone())).expect("written");
        }
        store.blocking().checkpoint().expect("checkpoint")
    };
    store.blocking().stage(stage([accept(0, 4)])).expect("staged");
    fill();
    let older = fill();
    let old_rows = disk.rows.fork();
    store.blocking().marker(commit(0)).expect("taken");
    fill();
    let purged = Path::new(ROOT).join("wal/00000000000000000001.wal");
    assert!(disk.fs.content(&purged).is_none(), "the stage's entry is gone from the log");
    store.blocking().stage(on(1, at(1, stage([accept(0, 0)])))).expect("staged");
    let expected = state_of(&store);
    // The snapshot's newest batch is lost, and the log has been purged after it.
    let image = Disk::with(disk.fs.power_cut(PageModel::UnsyncedLost), old_rows).open();
    assert_eq!((image.recovery().snapshot_lsn, image.recovery().replayed), (older, 12));
    assert_eq!(state_of(&image), expected);
    assert_eq!(row(&image, 0).batches, [batch(0, 4, 2, 1)]);
}

#[test]
fn c_6_what_came_last_counts_not_what_has_the_higher_state_or_count() {
    let mut store = Store::started();
    store.stages(stage([delivered(5, accept(0, 3))]));
    store.takes(abort(0));
    store.stages(of(200, stage([delivered(6, reject(0, 3))])));
    store.takes(Marker { producer_id: 200, ..abort(0) });
    store.stages(at(1, stage([delivered(7, accept(0, 1))])));
    store.takes(commit(1));
    store.stages(of(200, at(1, stage([delivered(7, accept(2, 2))]))));
    let expected = store.state();
    for _ in 0..2 {
        store.kill_and_open();
        assert_eq!(store.state(), expected);
    }
    let records = [batch(0, 1, 2, 7), batch(2, 3, 0, 6)];
    assert_eq!((store.records(0), store.complete(0)), (records.to_vec(), 2));
    assert_eq!(store.pending(0), [(2, 2)]);
}

#[test]
fn c_7_two_million_pending_records_cost_no_more_than_their_ranges() {
    let mut store = Store::started();
    let acks: Vec<_> = (0..4_i64)
        .map(|n| (n * 500_000, n * 500_000 + 499_999))
        .map(|(first, last)| if first == 0 { reject(first, last) } else { accept(first, last) })
        .collect();
    store.stages(stage(acks));
    store.stages(of(200, on(1, stage([accept(0, 0)]))));
    store.checkpoint();
    store.kill_and_open();
    let row = store.row(0);
    // Equal neighbours are one: what was rejected, and all that was accepted.
    assert_eq!(row.pending.len(), 2);
    assert!(row.approx_bytes() < 4_096, "{} bytes", row.approx_bytes());
    let producer = store.producer();
    let holders: Vec<_> = producer.open[&0].keys.iter().cloned().collect();
    assert_eq!(holders, [key(0)], "the producer names what a marker has to look at");
    store.resolves(commit(0), &[(0, &[(0, 1_999_999)])]);
    assert_eq!(store.complete(0), 2_000_000);
    assert_eq!(store.pending(1), [(0, 0)]);
}

#[test]
fn c_8_a_marker_that_resolves_nothing_is_remembered_and_logged_once() {
    let mut store = Store::started();
    store.resolves_nothing(abort(0));
    let logged = store.logged();
    for _ in 0..3 {
        store.resolves_nothing(abort(0));
    }
    assert_eq!(store.logged(), logged, "a repeat writes nothing");
    store.checkpoint();
    store.kill_and_open();
    let last = store.producer().last_completed.map(|last| (last.epoch, last.outcome));
    assert_eq!(last, Some((1, Abort)));
    store.refuses(stage([accept(0, 0)]), INVALID_PRODUCER_EPOCH);
    store.clock.advance(86_400_000);
    let expire = Command::ExpireProducers { producer_ids: vec![PID] };
    store.blocking().execute(expire).expect("looked for");
    store.kill_and_open();
    assert!(store.blocking().producer(PID).expect("read").is_none(), "forgotten after a day");
}

#[test]
fn c_9_a_crash_within_recovery_applies_nothing_twice() {
    let disk = Disk::new();
    let store = disk.started();
    store.blocking().stage(stage([accept(0, 4), reject(9, 9)])).expect("staged");
    store.blocking().checkpoint().expect("checkpoint");
    store.blocking().marker(commit(0)).expect("taken");
    store.blocking().stage(at(1, stage([accept(5, 5)]))).expect("staged");
    let expected: State = state_of(&store);
    let cut = disk.power_cut(PageModel::UnsyncedLost);
    let probe = cut.power_cut(PageModel::AllKept);
    drop(probe.open());
    let mut images = 0;
    for call in 1..=probe.fs.calls() {
        let image = cut.power_cut(PageModel::AllKept);
        image.fs.crash_after(call);
        drop(image.try_open());
        for model in [PageModel::AllKept, PageModel::UnsyncedLost] {
            assert_eq!(state_of(&image.power_cut(model).open()), expected, "call {call}");
            images += 1;
        }
    }
    println!("crash-in-recovery-images={images}");
    assert!(images > 20);
    assert_eq!(expected.partitions[&key(0)].delivery_complete_count, 6);
}
