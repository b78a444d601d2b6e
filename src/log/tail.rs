//! Where the log ends: one decision, from named facts, as a table.
//!
//! Recovery reads frame after frame. At each position it gathers [`Facts`] and asks [`decide`].
//! Most of the table is about telling a crash from damage: a crash may leave an unfinished frame
//! at the very end, which is cut; anything else that does not verify was once whole, may have been
//! answered for, and is corruption.
//!
//! What the writer does, and the table relies on:
//!
//! * A segment is zeros, synced, before its first frame is written; so the end is zeros too.
//! * *Strict* frames are written only after everything before them was synced. *Relaxed* ones may
//!   be written behind un-synced ones, so a crash may keep a later one and lose an earlier one.
//! * Every frame carries a durable mark: the LSN up to which everything had been synced. It
//!   *vouches* for the entries up to there. So do the first LSN of a successor segment and a
//!   snapshot's applied LSN, which both come after a sync.
//! * A segment holds no frame before its predecessor's seal is synced.
//! * Before anything is appended behind a cut, the cut region is zeros, synced.

/// What is known about a position of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The bytes could not be read.
    pub read_error: bool,
    /// No later segment holds a frame.
    pub last_segment: bool,
    /// The magic is there, and what the header says is possible: field values, a payload that fits,
    /// entries that fill it, zero padding.
    pub plausible: bool,
    /// The header matches its checksum.
    pub header_ok: bool,
    /// The payload matches its checksum.
    pub payload_ok: bool,
    /// LSN, previous checksum and incarnation continue the frame before.
    pub chain_ok: bool,
    /// From here to the segment's end there are zeros only, and none are missing.
    pub rest_zero: bool,
    /// The strongest verified frame of this chain behind this position, in this segment.
    pub later: Later,
    /// Something proves that the LSN expected here was once durable.
    pub vouched: bool,
}

/// What stands behind a position that does not verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Later {
    /// No verified frame of this chain.
    Nothing,
    /// Relaxed frames only, none of which vouches for this position.
    Relaxed,
    /// A strict frame, none which vouches for this position.
    Strict,
    /// A frame whose durable mark covers the LSN expected here.
    Vouching,
}

/// What to do at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The frame is whole: take it and go on behind it.
    Accept,
    /// The log ends here, cleanly.
    End,
    /// A crash left an unfinished frame: the log ends here, and repair cuts what follows.
    TornTail,
    /// Something that was once whole no longer is. Nothing may be changed.
    Corrupt,
    /// The disk did not answer. Says nothing about where the log ends.
    IoError,
}

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    /// Names the row in reports; explained beside the table.
    pub label: &'static str,
    facts: [Pattern; 7],
    later: &'static [Later],
    vouched: Pattern,
    /// What to do.
    pub verdict: Verdict,
}

type Pattern = Option<bool>;
const I: Pattern = Some(true);
const O: Pattern = Some(false);
const X: Pattern = None;

use Later::{Nothing, Relaxed, Strict, Vouching};
const ANY: &[Later] = &[Nothing, Relaxed, Strict, Vouching];
const NONE: &[Later] = &[Nothing];
const SOME: &[Later] = &[Relaxed, Strict, Vouching];
// What a crash of this very chain may leave behind a frame that it tore.
const LOOSE: &[Later] = &[Nothing, Relaxed];
// What was only written after the frame here had been synced.
const FIRM: &[Later] = &[Strict, Vouching];

const fn row(
    label: &'static str,
    facts: [Pattern; 7],
    later: &'static [Later],
    vouched: Pattern,
    verdict: Verdict,
) -> Row {
    Row { label, facts, later, vouched, verdict }
}

/// The table. Exactly one row matches any facts; a test goes through all of them.
#[rustfmt::skip]
pub static TABLE: [Row; 19] = [
    //           read error
    //           |  last segment
    //           |  |  plausible
    //           |  |  |  header ok
    //           |  |  |  |  payload ok
    //           |  |  |  |  |  chain ok
    //           |  |  |  |  |  |  rest zero
    //           |  |  |  |  |  |  |   later  vouched
    row("@read", [I, X, X, X, X, X, X], ANY,   X, Verdict::IoError),

    row("@ok",   [O, X, I, I, I, I, O], ANY,   X, Verdict::Accept),

    row("@odd",  [O, X, O, I, X, X, O], ANY,   X, Verdict::Corrupt),
    row("@link", [O, X, I, I, X, O, O], ANY,   X, Verdict::Corrupt),

    row("@pay",  [O, I, I, I, O, I, O], LOOSE, O, Verdict::TornTail),
    row("@pay1", [O, I, I, I, O, I, O], LOOSE, I, Verdict::Corrupt),
    row("@pay2", [O, I, I, I, O, I, O], FIRM,  X, Verdict::Corrupt),
    row("@pay3", [O, O, I, I, O, I, O], ANY,   X, Verdict::Corrupt),

    row("@head", [O, I, I, O, X, X, O], LOOSE, O, Verdict::TornTail),
    row("@hole", [O, I, O, O, X, X, O], LOOSE, O, Verdict::TornTail),
    row("@bad1", [O, I, X, O, X, X, O], LOOSE, I, Verdict::Corrupt),
    row("@bad2", [O, I, X, O, X, X, O], FIRM,  X, Verdict::Corrupt),
    row("@bad3", [O, O, X, O, X, X, O], ANY,   X, Verdict::Corrupt),

    row("@end",  [O, I, O, O, X, X, I], NONE,  O, Verdict::End),
    row("@gone", [O, I, O, O, X, X, I], NONE,  I, Verdict::Corrupt),
    row("@seal", [O, O, O, O, X, X, I], NONE,  X, Verdict::Corrupt),

    row("@imp1", [O, X, X, I, X, X, I], ANY,   X, Verdict::Corrupt),
    row("@imp2", [O, X, I, O, X, X, I], ANY,   X, Verdict::Corrupt),
    row("@imp3", [O, X, O, O, X, X, I], SOME,  X, Verdict::Corrupt),
];

// The history behind each row.
//
// @read  The disk answers with an error. The frame may be whole; a retry, another cable or a copy
//        of the disk may still show it, so this never shortens the log.
//
// @ok    A whole frame. That it may never have left the page cache (the process was killed, the
//        machine was not) does not matter here: repair writes such frames again and syncs.
//
// @odd   A checksum over a header that cannot be. No crash computes a checksum: a foreign writer, a
//        mistake in ours, or rot in the padding, which the checksums leave out.
// @link  A header that verifies, at the place it was written for, but continues another frame than
//        the one before. Cut regions are zeros before they are written again, so no crash leaves
//        one: a file was exchanged, or a frame before it was.
//
// @pay   A crash between write and sync: the sector with the header reached the disk, another did
//        not. Behind it there is nothing, or frames written without waiting. Rot in a frame that
//        was answered for looks the same when nothing was written since; this is why an idle
//        writer adds a mark, which leads to @pay2.
// @pay1  As @pay, but the entries expected here were durable: the successor segment or the snapshot
//        says so. Rot, or a lost write.
// @pay2  As @pay, but a frame behind it was written after this one had been synced.
// @pay3  As @pay, but a later segment holds frames: this segment was synced and sealed before.
//
// @head  A crash between write and sync that tore the header itself, across two sectors or within a
//        disk without atomic sectors.
// @hole  A crash between write and sync that kept only later sectors of the frame, or kept a later
//        relaxed frame and not this one; or one between a repair's zeros and their sync; or a file
//        that somebody cut short here.
// @bad1, @bad2, @bad3  As @pay1, @pay2, @pay3.
//
// @end   The normal end. A torn frame of which no sector reached the disk looks the same.
// @gone  Zeros where something durable was: a lost write, a file restored from an older copy, or a
//        snapshot of a longer log.
// @seal  Zeros where at least the seal should be, for a later segment holds frames.
//
// @imp1, @imp2, @imp3  Zeros have neither magic nor checksum, and no frames within them. The facts
//        contradict each other: the bytes changed while they were read.

/// The one row that matches.
pub fn row_for(facts: &Facts) -> &'static Row {
    let mut matching = TABLE.iter().filter(|row| row.matches(facts));
    let row = matching.next();
    debug_assert!(row.is_some() && matching.next().is_none(), "one row for {facts:?}");
    // The test proves that there is a row; if it were wrong, refusing is the safe answer.
    row.unwrap_or(&IMPOSSIBLE)
}

static IMPOSSIBLE: Row = row("@none", [X; 7], ANY, X, Verdict::Corrupt);

/// Decides.
pub fn decide(facts: &Facts) -> Verdict {
    row_for(facts).verdict
}

impl Row {
    fn matches(&self, facts: &Facts) -> bool {
        let known = [
            facts.read_error,
            facts.last_segment,
            facts.plausible,
            facts.header_ok,
            facts.payload_ok,
            facts.chain_ok,
            facts.rest_zero,
        ];
        self.facts.iter().zip(known).all(|(pattern, fact)| pattern.is_none_or(|want| want == fact))
            && self.later.contains(&facts.later)
            && self.vouched.is_none_or(|want| want == facts.vouched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_facts() -> impl Iterator<Item = Facts> {
        (0..1u32 << 8).flat_map(|bits| {
            ANY.iter().map(move |later| {
                let bit = |n: u32| bits & (1 << n) != 0;
                Facts {
                    read_error: bit(0),
                    last_segment: bit(1),
                    plausible: bit(2),
                    header_ok: bit(3),
                    payload_ok: bit(4),
                    chain_ok: bit(5),
                    rest_zero: bit(6),
                    vouched: bit(7),
                    later: *later,
                }
            })
        })
    }

    #[test]
    fn exactly_one_row_matches_any_facts_and_every_row_is_needed() {
        let mut used = vec![0; TABLE.len()];
        let mut combinations = 0;
        for facts in all_facts() {
            let mut matching = Vec::new();
            for (row, count) in TABLE.iter().zip(&mut used) {
                if row.matches(&facts) {
                    *count += 1;
                    matching.push(row.label);
                }
            }
            assert_eq!(matching.len(), 1, "{facts:?} matches rows {matching:?}");
            combinations += 1;
        }
        assert!(used.iter().all(|count| *count > 0), "{used:?}");
        println!("{combinations} combinations of facts, {} rows", TABLE.len());
        assert_eq!(combinations, 1024);
    }

    #[test]
    fn a_torn_tail_needs_the_last_segment_no_voucher_and_nothing_strict_behind() {
        for facts in all_facts() {
            match decide(&facts) {
                Verdict::TornTail => {
                    assert!(facts.last_segment && !facts.vouched && !facts.read_error);
                    assert!(matches!(facts.later, Nothing | Relaxed));
                    assert!(!(facts.header_ok && facts.payload_ok));
                    assert!(!facts.header_ok || facts.chain_ok);
                }
                Verdict::End => {
                    assert!(facts.last_segment && !facts.vouched && facts.rest_zero);
                    assert!(facts.later == Nothing && !facts.header_ok && !facts.read_error);
                }
                Verdict::Accept => {
                    assert!(facts.header_ok && facts.payload_ok && facts.chain_ok);
                    assert!(facts.plausible && !facts.read_error);
                }
                Verdict::IoError => assert!(facts.read_error),
                Verdict::Corrupt => assert!(!facts.read_error),
            }
        }
    }

    #[test]
    fn more_proof_of_durability_never_turns_corruption_into_an_end() {
        let order = |verdict| matches!(verdict, Verdict::Corrupt);
        for facts in all_facts() {
            for stronger in [
                Facts { vouched: true, ..facts },
                Facts { last_segment: false, ..facts },
                Facts { later: Vouching, ..facts },
            ] {
                assert!(order(decide(&stronger)) >= order(decide(&facts)), "{facts:?}");
            }
        }
    }
}
