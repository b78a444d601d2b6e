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
/// "Permission denied", as an error number.
pub const EACCES: i32 = Errno::ACCESS.raw_os_error();
/// "Too many open files", as an error number.
pub const EMFILE: i32 = Errno::MFILE.raw_os_error();
/// "Read-only file system", as an error number.
pub const EROFS: i32 = Errno::ROFS.raw_os_error();

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
    /// Of the call with this number and the later ones, those that the predicate picks.
    From(u64, fn(&Call) -> bool),
}

/// How often a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The first time only.
    Once,
    /// So many times, as a disk that is full until somebody frees space; then no more.
    Times(u64),
    /// Every time.
    ///
    /// After [`When::Call`], `Times` and `Sticky` go on with every later call of the same kind.
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
    /// What was asked for, to tell how to repeat it.
    planned: Crash,
    planned_faults: Vec<Fault>,
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
            planned: Crash::Never,
            planned_faults: Vec::new(),
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

    pub(super) fn reseed(&mut self, seed: u64) {
        (self.seed, self.random) = (seed, Random(seed));
    }

    pub(super) fn crash_before(&mut self, call: u64) {
        self.crash = Crash::Before(call);
        self.planned = self.crash;
    }

    pub(super) fn crash_after(&mut self, call: u64) {
        self.crash = Crash::After(call);
        self.planned = self.crash;
    }

    /// The call with which the planned crash came, or comes.
    pub(super) fn crash(&self) -> Option<(&'static str, u64)> {
        match self.planned {
            Crash::Before(call) => Some(("crash_before", call)),
            Crash::After(call) => Some(("crash_after", call)),
            Crash::Never | Crash::Done => None,
        }
    }

    pub(super) fn all_faults(&self) -> &[Fault] {
        &self.planned_faults
    }

    pub(super) fn is_crashed(&self) -> bool {
        matches!(self.crash, Crash::Done)
    }

    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
        self.planned_faults.push(fault);
    }

    pub(super) fn clear(&mut self) {
        let (crash, planned) = (self.crash, self.planned);
        *self = Plan { crash, planned, ..Plan::new(self.seed) };
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
            When::From(number, picks) => call.number >= number && picks(call),
        });
        if let Some(index) = hit {
            let fault = &mut self.faults[index];
            let error = io::Error::from_raw_os_error(fault.errno);
            if let (Repeat::Sticky | Repeat::Times(_), When::Call(_)) = (fault.repeat, fault.when) {
                fault.when = When::Op(call.op);
            }
            match fault.repeat {
                Repeat::Once | Repeat::Times(0 | 1) => drop(self.faults.remove(index)),
                Repeat::Times(times) => fault.repeat = Repeat::Times(times - 1),
                Repeat::Sticky => {}
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
