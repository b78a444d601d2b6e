//! The real engine in many orders of its threads (`tools/models.sh`): each model runs
//! `SHARESTATE_SCHEDULES` random schedules, in which a thread may be interrupted at every lock,
//! channel, atomic and file call. A wake-up that is lost shows as a deadlock.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use shuttle::future::block_on;
use shuttle::rand::Rng;
use shuttle::scheduler::RandomScheduler;
use shuttle::thread;
use tokio::sync::oneshot;

use super::*;
use crate::fsio::sim::{Fault, PageModel, Repeat, SimFs, When};
use crate::fsio::{Fs, FsOp};
use crate::log::{self, Batch, LogIdentity, LogOptions, Prepare, ScanError, Scope};
use crate::snapshot::MemoryRows;

/// Runs a model and prints how many schedules it passed.
fn explore(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let schedules =
        std::env::var("SHARESTATE_SCHEDULES").map_or(1_000, |n| n.parse().expect("a number"));
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(1_000_000);
    let scheduler = RandomScheduler::new_from_seed(1, schedules);
    let ran = shuttle::Runner::new(scheduler, config).run(model);
    println!("model={name} schedules={ran}");
    assert_eq!(ran, schedules);
}

/// A number that the schedule decides.
fn below(bound: u64) -> u64 {
    shuttle::rand::thread_rng().gen_range(0..bound)
}

const ROOT: &str = "/s";

fn options(queued_commands: usize) -> Options {
    let mut options = Options::default();
    options.segment_bytes = 4 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    // A wait with a deadline never ends by it under shuttle.
    options.mark_delay = std::time::Duration::MAX;
    options.queue_bytes =
        approx_bytes(&initialize(0)).next_multiple_of(PERMIT_BYTES) * queued_commands;
    options
}

fn key(n: i32) -> SharePartitionKey {
    SharePartitionKey::new("g", uuid::Uuid::from_u128(1), n).expect("valid")
}

fn initialize(n: i32) -> Command {
    Command::Initialize { key: key(n), state_epoch: 1, start_offset: 0 }
}

/// A running engine and the disk under it.
#[derive(Clone)]
struct World {
    fs: SimFs,
    rows: MemoryRows,
    engine: Arc<Engine>,
}

impl World {
    fn start(queued_commands: usize) -> Self {
        let (fs, rows) = (SimFs::new(1), MemoryRows::default());
        let options = options(queued_commands);
        let recovered = recovery::open(Arc::new(fs.clone()), &rows, Path::new(ROOT), &options);
        let engine = Engine::start(recovered.expect("open"), &options).expect("start");
        Self { fs, rows, engine: Arc::new(engine) }
    }

    fn initialize(&self, n: i32) -> Result<Answer, StoreError> {
        block_on(self.engine.execute(initialize(n)))
    }

    /// Whether share partition `n` is there after a power cut now.
    fn survives(&self, n: i32) -> bool {
        let (fs, rows) = (self.fs.power_cut(PageModel::UnsyncedLost), self.rows.fork());
        let recovered = recovery::open(Arc::new(fs), &rows, Path::new(ROOT), &options(8));
        let mut recovered = recovered.expect("opens after a power cut");
        !recovered.resident.rows(&[key(n)]).expect("rows in memory").0.is_empty()
    }
}

fn spawn<T: Send + 'static>(
    world: &World,
    run: impl FnOnce(World) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let world = world.clone();
    thread::spawn(move || run(world))
}

#[test]
fn no_wake_up_is_lost_and_the_items_of_a_sender_stay_in_order() {
    explore("queue", || {
        let queue = Arc::new(Queue::new());
        let senders = [0, 1].map(|sender| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..3).for_each(|n| queue.push((sender, n)).expect("open")))
        });
        let (mut next, mut taken) = ([0, 0], VecDeque::new());
        while next != [3, 3] {
            queue.take(&mut taken, None);
            for (sender, n) in taken.drain(..) {
                assert_eq!(n, next[sender]);
                next[sender] += 1;
            }
        }
        let _ = senders.map(|sender| sender.join().expect("sender"));
        assert!(queue.is_empty());
    });
}

#[test]
fn every_call_is_answered_and_only_when_it_survives_a_power_cut() {
    explore("group commit", || {
        // Room for two commands: callers wait for room, and for their answers.
        let world = World::start(2);
        let callers = [0, 10].map(|from| {
            spawn(&world, move |world| {
                for n in from..from + 2 {
                    world.initialize(n).expect("accepted");
                    assert!(world.survives(n), "{n} was answered and is lost");
                }
            })
        });
        let _ = callers.map(|caller| caller.join().expect("caller"));
        block_on(world.engine.close()).expect("close");
        assert_eq!(
            world.engine.permits.available_permits() * PERMIT_BYTES,
            world.engine.queue_bytes
        );
    });
}

#[test]
fn answers_go_out_in_the_order_of_the_log() {
    explore("order of answers", || {
        let world = World::start(8);
        let other = spawn(&world, |world| world.initialize(9).map(drop));
        let mut answers: Vec<_> = (0..3)
            .map(|n| {
                let permits = Arc::clone(&world.engine.permits).try_acquire_many_owned(1);
                world.engine.submit(initialize(n), permits.expect("room")).expect("open").0
            })
            .collect();
        let last = answers.pop().expect("three");
        block_on(last).expect("answered").expect("accepted");
        for mut earlier in answers {
            earlier.try_recv().expect("answered before the last one").expect("accepted");
        }
        other.join().expect("caller").expect("accepted");
        block_on(world.engine.close()).expect("close");
    });
}

#[test]
fn after_the_first_failure_nobody_is_told_ok_and_everybody_is_told_something() {
    explore("poison", || {
        let world = World::start(2);
        let nth = 1 + below(8);
        let when = When::Call(world.fs.calls() + nth);
        world.fs.fail(Fault { when, errno: 5, repeat: Repeat::Once });
        let failed = Arc::new(AtomicBool::new(false));
        let callers = [0, 10].map(|from| {
            let failed = Arc::clone(&failed);
            spawn(&world, move |world| {
                for n in from..from + 3 {
                    let late = failed.load(Ordering::SeqCst);
                    match world.initialize(n) {
                        Ok(_) => {
                            assert!(!late, "{n} was accepted after a failure");
                            assert!(world.survives(n), "{n} was answered and is lost");
                        }
                        Err(error) => {
                            assert_eq!(error.class(), crate::ErrorClass::Poisoned, "{error}");
                            assert!(world.engine.poison().is_some());
                            failed.store(true, Ordering::SeqCst);
                        }
                    }
                }
            })
        });
        let _ = callers.map(|caller| caller.join().expect("caller"));
        let poisoned = failed.load(Ordering::SeqCst) || world.engine.poison().is_some();
        let closed = block_on(world.engine.close());
        assert!(closed.is_err() || !poisoned, "a failed store closes as if nothing were wrong");
    });
}

#[test]
fn what_is_accepted_before_a_close_is_answered_and_later_calls_are_told_closed() {
    explore("close", || {
        let world = World::start(2);
        let callers = [0, 10].map(|from| {
            spawn(&world, move |world| {
                let answers = [from, from + 1].map(|n| (n, world.initialize(n)));
                answers
                    .into_iter()
                    .filter(|(n, answer)| match answer {
                        Ok(_) => true,
                        Err(StoreError::Closed) => false,
                        Err(error) => panic!("{n}: {error}"),
                    })
                    .map(|(n, _)| n)
                    .collect::<Vec<_>>()
            })
        });
        let closer = spawn(&world, |world| block_on(world.engine.close()).expect("close"));
        let accepted = callers.map(|caller| caller.join().expect("caller")).concat();
        closer.join().expect("closer");
        assert!(matches!(world.initialize(99), Err(StoreError::Closed)));
        for n in accepted {
            assert!(world.survives(n), "{n} was answered and is lost");
        }
    });
}

#[test]
fn a_checkpoint_and_its_purge_beside_writers_lose_nothing() {
    explore("checkpoint", || {
        let world = World::start(2);
        let callers = [0, 10].map(|from| {
            spawn(&world, move |world| {
                for n in from..from + 2 {
                    world.initialize(n).expect("accepted");
                    assert!(world.survives(n), "{n} was answered and is lost");
                }
            })
        });
        block_on(world.engine.checkpoint()).expect("checkpoint");
        let _ = callers.map(|caller| caller.join().expect("caller"));
        block_on(world.engine.close()).expect("close");
        assert_eq!(world.engine.progress().applied_lsn, 4);
    });
}

#[test]
fn a_reader_beside_rollovers_and_purges_sees_all_of_the_log_or_is_told_that_it_was_overtaken() {
    explore("purge and reader", || {
        let (fs, dir) = (SimFs::new(1), PathBuf::from("/wal"));
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        let uuid = uuid::Uuid::from_u128(1);
        let options =
            LogOptions { segment_bytes: 4 << 10, relaxed: false, prepare: Prepare::Inline };
        let identity = LogIdentity { uuid, incarnation: 1 };
        let mut log = log::create(Arc::clone(&shared), &dir, identity, options).expect("create");
        let segments = log.segments();
        let durable = Arc::new(AtomicUsize::new(0));
        let floor = Arc::new(AtomicUsize::new(0));
        let writer = thread::spawn({
            let durable = Arc::clone(&durable);
            move || {
                for lsn in 1..=6 {
                    let mut batch = Batch::new(lsn);
                    batch.push(1, 1, &[7; 1_800]);
                    log.append(&batch).expect("append");
                    log.sync().expect("sync");
                    durable.store(lsn as usize, Ordering::SeqCst);
                }
            }
        });
        let purger = thread::spawn({
            let (fs, floor, durable) = (fs.clone(), Arc::clone(&floor), Arc::clone(&durable));
            move || {
                for to in [1, 2, 5] {
                    while durable.load(Ordering::SeqCst) < to {
                        thread::yield_now();
                    }
                    floor.store(to, Ordering::SeqCst);
                    log::purge(&fs, &segments, to as Lsn).expect("purge");
                }
            }
        });
        loop {
            let (from, to) = (floor.load(Ordering::SeqCst), durable.load(Ordering::SeqCst));
            let read = tail(Arc::clone(&shared), &dir, from);
            let overtaken = floor.load(Ordering::SeqCst) > from;
            match read {
                Ok(lsns) => {
                    assert!(lsns.iter().copied().eq(from + 1..=from + lsns.len()), "{lsns:?}");
                    assert!(from + lsns.len() >= to, "{lsns:?} ends before {to}");
                }
                Err(ScanError::Log(log::LogError::Overtaken { .. })) => {}
                // Purged further than where this reader begins, before it looked.
                Err(error) => assert!(overtaken, "{error:?}"),
            }
            if to == 6 {
                break;
            }
        }
        writer.join().expect("writer");
        purger.join().expect("purger");
    });
}

/// The LSNs behind `applied`, as a reader finds them.
fn tail(fs: Arc<dyn Fs>, dir: &Path, applied: usize) -> Result<Vec<usize>, ScanError<()>> {
    let mut lsns = Vec::new();
    let mut visit = |entry: log::Entry<'_>| {
        lsns.push(entry.lsn as usize);
        Ok::<(), ()>(())
    };
    let uuid = uuid::Uuid::from_u128(1);
    log::scan(fs, dir, uuid, applied as Lsn, Scope::Tail, &mut visit)?;
    Ok(lsns)
}

/// A caller that goes on with the store from within the completion of its own call.
struct Reenters {
    engine: Arc<Engine>,
    woken: AtomicBool,
}

impl Wake for Reenters {
    fn wake(self: Arc<Self>) {
        // Takes the locks that there are. Were one held, shuttle would report a deadlock.
        let (reply, _) = oneshot::channel();
        let _ = self.engine.push(Event::Rows(Vec::new(), reply));
        let _ = self.engine.inbox.is_empty();
        drop(self.engine.thread.try_lock());
        self.woken.store(true, Ordering::SeqCst);
    }
}

#[test]
fn no_call_is_completed_while_a_lock_is_held() {
    explore("completion", || {
        let world = World::start(1);
        if below(2) == 0 {
            let when = When::Op(FsOp::SyncData);
            world.fs.fail(Fault { when, errno: 5, repeat: Repeat::Once });
        }
        let callers = [0, 1].map(|n| {
            spawn(&world, move |world| {
                let woken = AtomicBool::new(false);
                let caller = Arc::new(Reenters { engine: Arc::clone(&world.engine), woken });
                let waker = Waker::from(Arc::clone(&caller));
                let mut call = Box::pin(world.engine.execute(initialize(n)));
                while poll(call.as_mut(), &waker).is_pending() {
                    while !caller.woken.swap(false, Ordering::SeqCst) {
                        thread::yield_now();
                    }
                }
            })
        });
        let closes = below(2) == 0;
        let closer = spawn(&world, move |world| closes.then(|| block_on(world.engine.close())));
        let _ = callers.map(|caller| caller.join().expect("caller"));
        closer.join().expect("closer");
        let _ = block_on(world.engine.close());
    });
}

fn poll<F: Future>(call: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    call.poll(&mut Context::from_waker(waker))
}
