//! What a run without faults does, and what any crash of it may leave.

use std::ops::RangeInclusive;

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::Call;
use sharestate::model::{self, State};

use crate::oracle::{Oracle, View, view};
use crate::rw1::{self, Step};
use crate::world::{StepError, World, state_of, time_of};

/// A run without faults.
#[derive(Debug)]
pub struct Reference {
    pub seed: u64,
    pub steps: Vec<Step>,
    /// The state after each number of steps, and what the oracle says of it.
    pub states: Vec<State>,
    pub views: Vec<View>,
    /// The last LSN after each number of steps.
    pub lsns: Vec<u64>,
    /// All calls, and how many there had been when the store was open, after each number of steps,
    /// and after the close.
    pub trace: Vec<Call>,
    pub answered: Vec<u64>,
    /// Log segments made, and bytes of all frames.
    pub segments: usize,
    pub frame_bytes: usize,
}

impl Reference {
    pub fn rw1(seed: u64) -> Self {
        Self::of(seed, rw1::steps(seed), World::new(seed))
    }

    pub fn of(seed: u64, steps: Vec<Step>, world: World) -> Self {
        let (trace, answered) = traced(&world, &steps);
        // Looking at the state makes calls, so that is another run.
        let looked_at = world.fresh(seed);
        let store = looked_at.open().expect("no fault");
        let mut oracle = Oracle::default();
        let mut states = vec![state_of(&store)];
        let mut views = vec![oracle.view()];
        let mut lsns = vec![0];
        for (number, step) in steps.iter().enumerate() {
            if let Err(error) = looked_at.step(&store, number, step) {
                panic!("seed {seed}, step {number}, {step:?}: {error}");
            }
            oracle_step(&mut oracle, number, step);
            states.push(state_of(&store));
            views.push(oracle.view());
            lsns.push(lsns[number] + written(step));
            let (found, expected) = (view(&states[number + 1]), &views[number + 1]);
            assert_eq!(&found, expected, "seed {seed}, step {number}: the oracle disagrees");
        }
        let segments = trace.iter().filter(|call| call.op == FsOp::Rename && is_prepared(call));
        let segments = segments.count();
        let frames = trace.iter().filter(|call| call.op == FsOp::Write && call.offset > 0);
        let frame_bytes = frames.filter(|call| !is_prepared(call)).map(|call| call.bytes).sum();
        Self { seed, steps, states, views, lsns, trace, answered, segments, frame_bytes }
    }

    /// The run that crashed made the calls that this one made, up to the crash.
    pub fn assert_same_calls(&self, crashed: &World, call: u64) {
        assert!(crashed.fs.is_crashed(), "call {call} was never reached");
        let index = usize::try_from(call).expect("small");
        assert_eq!(crashed.fs.trace()[..index], self.trace[..index], "the run is not repeatable");
    }

    /// The numbers of the calls at which a crash makes a difference.
    pub fn mutating_calls(&self) -> Vec<u64> {
        self.trace.iter().filter(|call| call.mutates()).map(|call| call.number).collect()
    }

    /// What a crash may leave when so many steps were answered: those, and perhaps the next.
    pub fn allowed(&self, answered: usize) -> RangeInclusive<usize> {
        answered..=(answered + 1).min(self.steps.len())
    }

    /// What a crash may leave when not every answer waits for a sync: at least what was durable.
    pub fn allowed_relaxed(&self, outcome: &Outcome) -> RangeInclusive<usize> {
        let durable = self.lsns.iter().rposition(|lsn| *lsn <= outcome.durable_lsn);
        durable.expect("0 is there")..=*self.allowed(outcome.answered).end()
    }

    /// Opens what a crash left and compares all of it: it must be the state after one of these
    /// numbers of steps, as the store itself had it and as the oracle says. Answers which.
    pub fn check(
        &self,
        image: &World,
        allowed: RangeInclusive<usize>,
        context: &dyn Fn() -> String,
    ) -> usize {
        let store = image.open().unwrap_or_else(|error| panic!("{error}\n{}", context()));
        let found = state_of(&store);
        let steps = allowed.clone().find(|steps| self.states[*steps] == found);
        let steps = steps.unwrap_or_else(|| {
            let others = (0..self.states.len()).find(|steps| self.states[*steps] == found);
            let what = match others {
                Some(steps) if steps < *allowed.start() => format!("LOST: steps from {steps} on"),
                Some(steps) => format!("INVENTED: {steps} steps"),
                None => format!("no state of this history: {:#?}", view(&found)),
            };
            panic!("{what}, where {allowed:?} may be there\n{}", context())
        });
        assert_eq!(view(&found), self.views[steps], "the oracle disagrees\n{}", context());
        steps
    }
}

/// All calls of a run without faults; and how many there were when the store was open, after each
/// step, and after the close.
fn traced(world: &World, steps: &[Step]) -> (Vec<Call>, Vec<u64>) {
    let store = world.open().expect("no fault");
    let mut answered = vec![world.fs.calls()];
    for (number, step) in steps.iter().enumerate() {
        world.step(&store, number, step).unwrap_or_else(|error| panic!("step {number}: {error}"));
        answered.push(world.fs.calls());
    }
    store.blocking().close().expect("no fault");
    answered.push(world.fs.calls());
    (world.fs.trace(), answered)
}

/// Entries of a step.
fn written(step: &Step) -> u64 {
    match step {
        Step::Checkpoint => 0,
        Step::Commands(commands) => commands.len() as u64,
    }
}

fn is_prepared(call: &Call) -> bool {
    call.path.ends_with("prepared.tmp")
}

pub fn oracle_step(oracle: &mut Oracle, number: usize, step: &Step) {
    if let Step::Commands(commands) = step {
        for command in commands {
            let told = oracle.execute(command, time_of(number), &model::Options::default());
            told.unwrap_or_else(|code| panic!("the oracle refuses {command:?} with {code:?}"));
        }
    }
}

/// What became of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Steps that were answered with success, before the first that was not.
    pub answered: usize,
    /// Why that one was not.
    pub error: Option<StepError>,
    /// What the store believed to be durable at the end.
    pub durable_lsn: u64,
}

/// Runs the steps until one fails. A store that does not open has answered none.
pub fn run(world: &World, steps: &[Step]) -> Outcome {
    let Ok(store) = world.open() else { return Outcome::default() };
    let mut outcome = Outcome { answered: steps.len(), ..Outcome::default() };
    for (number, step) in steps.iter().enumerate() {
        if let Err(error) = world.step(&store, number, step) {
            (outcome.answered, outcome.error) = (number, Some(error));
            break;
        }
    }
    if outcome.error.is_none() {
        let _ = store.blocking().close();
    }
    outcome.durable_lsn = store.progress().durable_lsn;
    outcome
}
