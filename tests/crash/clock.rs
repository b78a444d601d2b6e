//! The clock jumps, or stands still.
//!
//! What is promised: nothing is ever ordered by the wall clock, so no jump changes an answer, the
//! order of entries or what a recovery finds; times are recorded as the clock told them. The one
//! decision that time takes part in is to forget an idle producer (semantics section 4.2). It is
//! made against the recorded time of last use, so a clock that jumps back or stands still only
//! delays it; one that jumps ahead of the expiration makes it early, as in Kafka, but never for a
//! producer with a pending ack, and nothing times a pending ack out.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::fsio::sim::PageModel;
use sharestate::model::{self, Answer, Command};

use crate::oracle::{self, Oracle, view};
use crate::rw1::{self, Step};
use crate::scale;
use crate::world::{World, state_of};

const HOUR: i64 = 3_600_000;
const YEAR: i64 = 365 * 24 * HOUR;
/// Some day in 2023, in ms since the Unix epoch.
const START: i64 = 1_700_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Jump {
    By(i64),
    Frozen,
}

const JUMPS: [Jump; 5] =
    [Jump::By(-10 * YEAR), Jump::By(-HOUR), Jump::Frozen, Jump::By(HOUR), Jump::By(10 * YEAR)];

/// What the clock shows at a step when it jumps at another.
fn shown(step: usize, at: usize, jump: Jump) -> i64 {
    let time = |step: usize| START + step as i64 * 1_000;
    match jump {
        _ if step < at => time(step),
        Jump::By(ms) => time(step) + ms,
        Jump::Frozen => time(at),
    }
}

/// Most of RW-1, with a search for idle producers after every twenty steps.
fn steps(seed: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, step) in rw1::steps(seed).into_iter().enumerate() {
        steps.push(step);
        if number % 20 == 19 {
            let producer_ids = (1_000..1_008).collect();
            steps.push(Step::Commands(vec![Command::ExpireProducers { producer_ids }]));
        }
    }
    steps.truncate(205);
    steps
}

/// Runs with a jump and compares every answer and the final state, before and after a power cut.
/// Answers how many producers were forgotten.
fn run(steps: &[Step], at: usize, jump: Jump) -> usize {
    let world = World::new(14);
    let store = world.open().expect("no fault");
    let (mut oracle, mut forgotten, mut logged) = (Oracle::default(), 0, 0);
    for (number, step) in steps.iter().enumerate() {
        let now = shown(number, at, jump);
        world.clock.set(now);
        let Step::Commands(commands) = step else {
            store.blocking().checkpoint().expect("no fault");
            continue;
        };
        let pending: BTreeSet<i64> = pending_producers(&oracle);
        for (command, answer) in commands.iter().zip(world.execute(&store, commands)) {
            let answer = answer.unwrap_or_else(|error| panic!("{jump:?} at {at}: {error}"));
            logged += 1;
            if let Answer::Expired { producer_ids } = &answer {
                assert!(producer_ids.iter().all(|id| !pending.contains(id)), "{jump:?} at {at}");
                forgotten += producer_ids.len();
                logged -= u64::from(producer_ids.is_empty());
            }
            let expected = oracle.execute(command, now, &model::Options::default());
            assert_eq!(oracle::told(Ok(answer)), expected, "{jump:?} at {at}, {command:?}");
        }
    }
    assert_eq!(store.progress().durable_lsn, logged, "{jump:?} at {at}: one entry after the other");
    let image = world.power_cut(PageModel::UnsyncedLost);
    // The machine comes up with a wrong clock.
    image.clock.set(shown(0, 0, JUMPS[at % JUMPS.len()]));
    let (found, recovered) = (state_of(&store), state_of(&image.open().expect("opens")));
    assert_eq!(found, recovered, "{jump:?} at {at}");
    assert_eq!(view(&found), oracle.view(), "{jump:?} at {at}");
    forgotten
}

fn pending_producers(oracle: &Oracle) -> BTreeSet<i64> {
    (1_000..1_008).filter(|id| !oracle.open(*id).is_empty()).collect()
}

#[test]
fn no_jump_of_the_clock_changes_an_order_or_times_an_ack_out() {
    let steps = steps(14);
    let points: Vec<usize> = (0..steps.len()).collect();
    let (runs, forgotten) = (AtomicUsize::new(0), AtomicUsize::new(0));
    scale::in_parallel(&points, |at| {
        for jump in JUMPS {
            let early = run(&steps, *at, jump);
            assert!(early == 0 || jump == Jump::By(10 * YEAR), "{jump:?} at {at}: too early");
            forgotten.fetch_add(early, Ordering::Relaxed);
            runs.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (runs, forgotten) = (runs.into_inner(), forgotten.into_inner());
    println!("clock-jump-runs={runs} decision-points={} forgotten={forgotten}", points.len());
    assert!(runs >= 1_000 && forgotten > 0);
}
