//! What goes wrong, and when.

use std::io;

use rustix::io::Errno;

use super::Call;
use crate::fsio::FsOp;

/// "Input/output error", as an error number.
pub const EIO: i32 = Errno::IO.raw_os_error();
/// "No space left on device", as an error number.
pub const ENOSPC: i32 = Errno::NOSPC.raw_os_error();
/// "Interrupted system call", as an error number.
pub const EINTR: i32 = Errno::INTR.raw_os_error();

/// Calls that fail.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Which ones.
    pub when: When,
    /// With which error number.
    pub errno: i32,
    /// How often.
    pub repeat: Repeat,
}

/// Which calls a fault hits.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// The call with this number.
    Call(u64),
    /// Calls of this kind.
    Op(FsOp),
    /// Calls that the predicate picks.
    Matching(fn(&Call) -> bool),
}

/// How often a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The first time only.
    Once,
    /// Every time; after [`When::Call`], every later call of the same kind.
    Sticky,
}

/// How many bytes a read or write transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// All that it asks for.
    Whole,
    /// At most this many, and at least 1.
    AtMost(usize),
    /// A random number from 1 to this.
    UpTo(usize),
}

/// What happens to a call.
pub(super) enum Fate {
    Run,
    RunThenFail(io::Error),
    Fail(io::Error),
}

#[derive(Debug)]
pub(super) struct Plan {
    seed: u64,
    random: Random,
    crash: Crash,
    faults: Vec<Fault>,
    transfers: u64,
    pub reads: Transfer,
    pub writes: Transfer,
    pub interrupt_every: u64,
    pub capacity: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Crash {
    Never,
    Before(u64),
    After(u64),
    Done,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Plan {
        Plan {
            seed,
            random: Random(seed),
            crash: Crash::Never,
            faults: Vec::new(),
            transfers: 0,
            reads: Transfer::Whole,
            writes: Transfer::Whole,
            interrupt_every: 0,
            capacity: None,
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn crash_before(&mut self, call: u64) {
        self.crash = Crash::Before(call);
    }

    pub(super) fn crash_after(&mut self, call: u64) {
        self.crash = Crash::After(call);
    }

    pub(super) fn is_crashed(&self) -> bool {
        matches!(self.crash, Crash::Done)
    }

    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn clear(&mut self) {
        let crash = self.crash;
        *self = Plan { crash, ..Plan::new(self.seed) };
    }

    pub(super) fn fate(&mut self, call: &Call) -> Fate {
        let power_cut = || io::Error::other("power cut");
        match self.crash {
            Crash::Done => return Fate::Fail(power_cut()),
            Crash::Before(number) if call.number >= number => {
                self.crash = Crash::Done;
                return Fate::Fail(power_cut());
            }
            Crash::After(number) if call.number >= number => {
                self.crash = Crash::Done;
                return Fate::RunThenFail(power_cut());
            }
            _ => {}
        }
        let hit = self.faults.iter().position(|fault| match fault.when {
            When::Call(number) => call.number == number,
            When::Op(op) => call.op == op,
            When::Matching(picks) => picks(call),
        });
        if let Some(index) = hit {
            let fault = &mut self.faults[index];
            let error = io::Error::from_raw_os_error(fault.errno);
            match (fault.repeat, fault.when) {
                (Repeat::Once, _) => drop(self.faults.remove(index)),
                (Repeat::Sticky, When::Call(_)) => fault.when = When::Op(call.op),
                (Repeat::Sticky, _) => {}
            }
            return Fate::Fail(error);
        }
        if self.interrupt_every > 0 && matches!(call.op, FsOp::Read | FsOp::Write) {
            self.transfers += 1;
            if self.transfers.is_multiple_of(self.interrupt_every) {
                return Fate::Fail(io::Error::from_raw_os_error(EINTR));
            }
        }
        Fate::Run
    }

    pub(super) fn read_length(&mut self, wanted: usize) -> usize {
        self.random.length(self.reads, wanted)
    }

    pub(super) fn write_length(&mut self, wanted: usize) -> usize {
        self.random.length(self.writes, wanted)
    }
}

/// A small generator (SplitMix64), so that runs do not depend on a library's version.
#[derive(Debug, Clone)]
pub(super) struct Random(pub u64);

impl Random {
    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % bound as u64) as usize
    }

    fn length(&mut self, transfer: Transfer, wanted: usize) -> usize {
        match transfer {
            Transfer::Whole => wanted,
            Transfer::AtMost(bytes) => wanted.min(bytes.max(1)),
            Transfer::UpTo(bytes) => wanted.min(self.below(bytes.max(1)) + 1),
        }
    }
}
