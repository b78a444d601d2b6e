//! How to repeat a case: the calls of a simulated file system that led to where it stands.

use std::fmt::Write as _;

use super::{Call, SimFs, World};
use crate::fsio::FsOp;

/// Calls shown at most, the last ones.
const SHOWN: usize = 40;

impl SimFs {
    /// What to print when a check of this file system's image failed: the calls that make it again,
    /// and the shortest trace that leads there: those since everything was last synced, whose fate
    /// a power cut decides.
    #[must_use]
    pub fn story(&self) -> String {
        let world = self.world();
        let mut text = format!("repeat with SimFs::new({})", world.plan.seed());
        if let Some((name, call)) = world.plan.crash() {
            let _ = write!(text, ", {name}({call})");
        }
        for fault in world.plan.all_faults() {
            let _ = write!(text, ", fail({fault:?})");
        }
        let calls = world.since_all_was_synced();
        let _ = write!(text, "; {} calls in all, since the last barrier:", world.trace.len());
        let skipped = calls.len().saturating_sub(SHOWN);
        if skipped > 0 {
            let _ = write!(text, "\n  ({skipped} earlier ones)");
        }
        for call in &calls[skipped..] {
            let _ = write!(text, "\n  {call}{}", world.fate_of(call));
        }
        text
    }
}

impl World {
    /// The changing calls from the first one on that is not synced; at least the last one.
    fn since_all_was_synced(&self) -> Vec<&Call> {
        let names = self.disk.unsynced.iter().map(|change| change.call);
        let first = names.chain(self.disk.unsynced_writes()).min();
        let changing = self.trace.iter().filter(|call| call.mutates());
        let last = changing.clone().next_back().map_or(0, |call| call.number);
        let first = first.unwrap_or(last);
        changing.filter(|call| call.number >= first).collect()
    }

    fn fate_of(&self, call: &Call) -> &'static str {
        if self.disk.unsynced.iter().any(|change| change.call == call.number) {
            "  (name not synced)"
        } else if self.disk.unsynced_writes().contains(&call.number) {
            "  (not synced)"
        } else {
            ""
        }
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{} {} {}", self.number, self.op, self.path.display())?;
        match self.op {
            FsOp::Read | FsOp::Write => write!(f, ", {} bytes at {}", self.bytes, self.offset),
            FsOp::SetLen | FsOp::Allocate => write!(f, ", {} bytes", self.offset),
            _ => Ok(()),
        }
    }
}
