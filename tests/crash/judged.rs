//! A run in which calls may fail: what was answered, by whom, and what may be there afterwards.

use sharestate::fsio::sim::PageModel;
use sharestate::model::{self, Command};
use sharestate::{ErrorClass, OpenError, ShareStore, StoreError};

use crate::oracle::{Oracle, View, view};
use crate::reference::{Reference, oracle_step};
use crate::rw1::Step;
use crate::world::{StepError, World, state_of, time_of};

/// What became of a run.
pub struct Judged {
    /// Why the store did not open.
    pub open_error: Option<OpenError>,
    /// Why the first step failed after which nothing may succeed.
    pub failure: Option<StepError>,
    /// Whether the close failed, where the run came to it.
    pub close_failed: bool,
    /// Steps answered with success before that.
    pub answered: usize,
    /// Whether steps were refused in between, and nothing logged for them.
    pub skipped: usize,
    /// What the oracle says, without and with what has an unknown outcome.
    allowed: [View; 2],
}

/// Runs all steps, those behind a failure too, and judges every answer.
pub fn run(world: &World, steps: &[Step], context: &dyn Fn() -> String) -> Judged {
    let nothing = Oracle::default().view();
    let mut judged = Judged {
        open_error: None,
        failure: None,
        close_failed: false,
        answered: 0,
        skipped: 0,
        allowed: [nothing.clone(), nothing],
    };
    let store = match world.open() {
        Ok(store) => store,
        Err(error) => {
            assert_eq!(error.class(), ErrorClass::Io, "{error}\n{}", context());
            judged.open_error = Some(error);
            return judged;
        }
    };
    let (mut oracle, mut unknown) = (Oracle::default(), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        match carry_out(world, &store, number, step, &mut oracle) {
            Progress::Done => judged.answered += 1,
            Progress::Skipped => judged.skipped += 1,
            Progress::Failed(error, commands) => {
                (judged.failure, unknown) = (Some(error), commands);
                nothing_succeeds(
                    world,
                    &store,
                    (number + 1, &steps[number + 1..]),
                    &oracle,
                    context,
                );
                break;
            }
        }
    }
    if judged.failure.is_none() {
        judged.close_failed = store.blocking().close().is_err();
    }
    judged.allowed[0] = oracle.view();
    for command in &unknown {
        let now = time_of(judged.answered + judged.skipped);
        let _ = oracle.execute(command, now, &model::Options::default());
    }
    judged.allowed[1] = oracle.view();
    judged
}

enum Progress {
    Done,
    Skipped,
    /// With the commands whose outcome is unknown.
    Failed(StepError, Vec<Command>),
}

fn carry_out(
    world: &World,
    store: &ShareStore,
    number: usize,
    step: &Step,
    oracle: &mut Oracle,
) -> Progress {
    let Step::Commands(commands) = step else {
        return match world.step(store, number, step) {
            Ok(()) => Progress::Done,
            Err(error) if error.is_final() => Progress::Failed(error, Vec::new()),
            Err(_) => Progress::Skipped, // the rows stay in memory and in the log
        };
    };
    world.set_time_of(number);
    let told = world.execute(store, commands);
    let (mut progress, mut unknown) = (Progress::Done, Vec::new());
    for (command, told) in commands.iter().zip(told) {
        let expect = |oracle: &mut Oracle| {
            oracle.execute(command, time_of(number), &model::Options::default())
        };
        match told {
            Ok(_) => assert!(expect(oracle).is_ok(), "the oracle refuses {command:?}"),
            Err(StoreError::Rejected(error)) => {
                assert_eq!(expect(oracle).expect_err("refused"), error.kafka_code(), "{command:?}");
                progress = Progress::Skipped;
            }
            Err(StoreError::Snapshot(error)) => {
                assert!(!error.is_corruption(), "{error}");
                progress = Progress::Skipped;
            }
            Err(error) => {
                if matches!(error, StoreError::OutcomeUnknown(_)) {
                    unknown.push(command.clone());
                }
                progress = Progress::Failed(error.into(), Vec::new());
            }
        }
    }
    match progress {
        Progress::Failed(error, _) => Progress::Failed(error, unknown),
        other => other,
    }
}

/// After a failed write or sync: no change succeeds, and no file is touched. What changes nothing,
/// such as a repeated initialize, may be answered like a read, if it rests on what is durable.
fn nothing_succeeds(
    world: &World,
    store: &ShareStore,
    (first, steps): (usize, &[Step]),
    oracle: &Oracle,
    context: &dyn Fn() -> String,
) {
    let calls = world.fs.calls();
    assert!(store.poison().is_some(), "{}", context());
    for (number, step) in steps.iter().enumerate().take(3) {
        let Err(error) = world.step(store, first + number, step) else {
            let mut same = oracle.clone();
            oracle_step(&mut same, first + number, step);
            assert!(same.view() == oracle.view(), "{step:?} is answered\n{}", context());
            continue;
        };
        assert!(error.is_final() && !error.is_unknown(), "{error}\n{}", context());
    }
    assert!(store.blocking().checkpoint().is_err(), "{}", context());
    assert!(store.blocking().close().is_err(), "{}", context());
    let trace = world.fs.trace();
    let touched = trace.iter().find(|call| call.number > calls && call.mutates());
    assert!(touched.is_none(), "after the failure: {touched:?}\n{}", context());
}

impl Judged {
    /// Whether nobody was told of a failure.
    pub fn is_unnoticed(&self) -> bool {
        let told = self.open_error.is_some() || self.failure.is_some() || self.close_failed;
        !told && self.skipped == 0
    }

    /// Opens what is left, without the fault: as the next process finds it, and after power cuts.
    /// All that was answered must be there, and nothing else. Answers the number of images.
    pub fn check(
        &self,
        world: &World,
        reference: &Reference,
        seed: u64,
        context: &dyn Fn() -> String,
    ) -> usize {
        let images = [
            ("restart", world.restart()),
            ("lost", world.power_cut(PageModel::UnsyncedLost)),
            ("random", world.power_cut(PageModel::Random { seed, granularity: 512 })),
        ];
        for (name, image) in &images {
            self.check_image(image, reference, &|| format!("{name}: {}", context()));
            // What it found may never have left the page cache before: now it is durable.
            image.goes_on(&|| format!("{name}: {}", context()));
        }
        images.len()
    }

    /// As [`check`](Self::check), for one image.
    pub fn check_image(&self, image: &World, reference: &Reference, context: &dyn Fn() -> String) {
        if self.skipped == 0 {
            reference.check(image, reference.allowed(self.answered), context);
            return;
        }
        let store = image.open().unwrap_or_else(|error| panic!("{error}\n{}", context()));
        let found = view(&state_of(&store));
        assert!(self.allowed.contains(&found), "lost or invented\n{}", context());
    }
}
