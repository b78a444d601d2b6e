//! The power fails at every single call, during work and again during the repair after it, and what
//! was synced is still there.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::log::{Entry, LogError, Lsn, Scope, create, purge, scan};

/// What a store would have promised when the power failed.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    /// The log was created.
    created: bool,
    /// Everything up to here was handed to the log.
    issued: Lsn,
    /// Everything up to here was answered for.
    synced: Lsn,
    /// Everything up to here is in the snapshot.
    applied: Lsn,
}

/// Several segments, marks, purges, and an opening in between.
fn workload(fs: &Arc<dyn Fs>, relaxed: bool, promise: &mut Promise) -> Result<(), LogError> {
    let mut log = create(fs.clone(), &dir(), identity(1), options(relaxed))?;
    promise.created = true;
    for round in 0..32u64 {
        if round == 14 {
            drop(log);
            let (_, scanned) = read(fs, promise.applied, Scope::Tail)?;
            log = scanned.repair(&quarantine(), 2, options(relaxed))?.0;
            promise.synced = log.durable_lsn();
        }
        // Of every size up to several sectors; and a few that fill what is left of a segment.
        let entries = 1 + round * 5 % 8;
        promise.issued = log.written_lsn() + entries;
        append(&mut log, entries)?;
        if !relaxed || round % 4 == 3 {
            promise.synced = log.sync()?;
        }
        promise.synced = promise.synced.max(log.durable_lsn());
        if round % 5 == 4 {
            log.mark()?;
            promise.synced = log.durable_lsn();
        }
        if round % 9 == 8 {
            // A checkpoint: everything durable is in the snapshot.
            let floor = promise.applied;
            promise.applied = promise.synced;
            purge(&**fs, &log.segments(), floor)?;
        }
    }
    Ok(())
}

fn models(seed: u64) -> [PageModel; 5] {
    [
        PageModel::AllKept,
        PageModel::UnsyncedLost,
        PageModel::Random { seed, granularity: 512 },
        PageModel::Random { seed: seed + 1, granularity: 512 },
        PageModel::Random { seed: seed + 2, granularity: 4096 },
    ]
}

/// The numbers of the calls at which a crash makes a difference.
fn mutating_calls(sim: &SimFs, from: u64) -> Vec<u64> {
    let trace = sim.trace();
    trace.iter().filter(|call| call.number > from && call.mutates()).map(|c| c.number).collect()
}

/// Reads the log after a crash and checks it against the promise; `None` if there never was one.
fn check(sim: &SimFs, promise: &Promise, what: &str) -> Option<sharestate::log::ScannedLog> {
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let (lsns, scanned) = match read(&fs, promise.applied, Scope::Tail) {
        Ok(read) => read,
        Err(error) if !promise.created => {
            let absent = matches!(error, LogError::Missing { .. } | LogError::Io(_));
            assert!(absent, "{what}: {error}");
            return None;
        }
        Err(error) => panic!("{what}: {error}\n{promise:?}"),
    };
    let last = scanned.report().last_lsn;
    assert!(last >= promise.synced, "{what}: lost {}, ends at {last}", promise.synced);
    assert!(last <= promise.issued, "{what}: invented {last}, {}", promise.issued);
    assert_eq!(lsns, (promise.applied + 1..=last).collect::<Vec<_>>(), "{what}");
    Some(scanned)
}

fn crash_everywhere(relaxed: bool) {
    let dry = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(dry.clone());
    let mut promise = Promise::default();
    workload(&fs, relaxed, &mut promise).expect("no crash");
    let calls = mutating_calls(&dry, 0);
    assert!(calls.len() > 80);

    let (mut states, mut second, mut torn, mut rollovers) = (0, 0, 0, 0);
    for call in &calls {
        let sim = SimFs::new(0);
        sim.crash_before(*call);
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        let mut promise = Promise::default();
        workload(&fs, relaxed, &mut promise).expect_err("the power failed");
        for model in models(call * 1000) {
            let what = format!("relaxed {relaxed}, call {call}, {model:?}");
            let after = sim.power_cut(model);
            states += 1;
            let Some(scanned) = check(&after, &promise, &what) else {
                continue;
            };
            let report = scanned.report();
            torn += usize::from(!matches!(report.verdict, sharestate::log::TailVerdict::End));
            rollovers += usize::from(report.unfinished_rollover);
            let last = report.last_lsn;

            // Repaired without a crash: everything found is durable, and the log goes on.
            let repaired = after.restart();
            repair_and_go_on(&repaired, &promise, last, relaxed, &what);

            // The power fails again during the repair, at every call.
            let dry = after.restart();
            let fs: Arc<dyn Fs> = Arc::new(dry.clone());
            let (_, scanned) = read(&fs, promise.applied, Scope::Tail).expect("as before");
            let start = dry.calls();
            scanned.repair(&quarantine(), 9, options(relaxed)).expect("no crash");
            for again in mutating_calls(&dry, start) {
                let sim = after.restart();
                sim.crash_before(again);
                let fs: Arc<dyn Fs> = Arc::new(sim.clone());
                let (_, scanned) = read(&fs, promise.applied, Scope::Tail).expect("as before");
                let failed = scanned.repair(&quarantine(), 9, options(relaxed));
                failed.expect_err("the power failed");
                for model in models(again * 77 + call) {
                    let what = format!("{what}, repair call {again}, {model:?}");
                    let after = sim.power_cut(model);
                    let scanned = check(&after, &promise, &what).expect("there is a log");
                    let last = scanned.report().last_lsn;
                    repair_and_go_on(&after, &promise, last, relaxed, &what);
                    second += 1;
                }
            }
        }
    }
    println!(
        "relaxed {relaxed}: {} crash points, {states} states ({torn} torn, {rollovers} unfinished \
         rollovers), {second} states after a second crash",
        calls.len()
    );
    assert!(torn > 0 && rollovers > 0);
}

/// Repairs, loses power, and must find the very same; then writes on, and must find that too.
fn repair_and_go_on(sim: &SimFs, promise: &Promise, last: Lsn, relaxed: bool, what: &str) {
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let (_, scanned) = read(&fs, promise.applied, Scope::Tail).expect(what);
    let (log, _) = scanned.repair(&quarantine(), 10, options(relaxed)).expect(what);
    assert_eq!((log.next_lsn(), log.durable_lsn()), (last + 1, last), "{what}");
    drop(log);
    let sim = sim.power_cut(PageModel::UnsyncedLost);
    let found = Promise { synced: last, issued: last, ..*promise };
    let scanned = check(&sim, &found, what).expect("there is a log");
    assert_eq!(scanned.report().verdict, sharestate::log::TailVerdict::End, "{what}");
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let (_, scanned) = read(&fs, promise.applied, Scope::Tail).expect(what);
    let (mut log, _) = scanned.repair(&quarantine(), 11, options(relaxed)).expect(what);
    append_synced(&mut log, 3).expect(what);
    append_synced(&mut log, 30).expect(what);
    let found = Promise { synced: last + 33, issued: last + 33, ..*promise };
    let sim = sim.power_cut(PageModel::UnsyncedLost);
    check(&sim, &found, what).expect("there is a log");
    // All of it, too, is one chain, down to what an unfinished purge has left.
    let all = |entry: Entry<'_>| {
        assert_eq!(entry.body, body(entry.lsn));
        Ok::<(), std::convert::Infallible>(())
    };
    scan(Arc::new(sim), &dir(), store(), promise.applied, Scope::All, &mut { all }).expect(what);
}

#[test]
fn no_synced_entry_is_lost_by_a_crash_at_any_call_twice_over() {
    crash_everywhere(false);
}

#[test]
fn a_relaxed_log_keeps_a_prefix_with_all_that_was_synced_twice_over() {
    crash_everywhere(true);
}
