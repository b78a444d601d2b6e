//! What a damaged log still proves: every entry up to the first gap, and an account of the rest.

use std::path::PathBuf;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::salvage::{Judge, Place, Provable, provable};
use sharestate::log::{Entry, LogError, Lsn, SegmentHeader, SegmentId};

/// Keeps entries up to an LSN, and notes what it is shown.
struct Keeper {
    refuses: Lsn,
    kept: Vec<Lsn>,
    lost: Vec<Lsn>,
}

impl Judge for Keeper {
    fn keep(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        assert_eq!((entry.kind, entry.body), (kind(entry.lsn), &*body(entry.lsn)));
        if entry.lsn == self.refuses {
            return Err("it does not fit".to_owned());
        }
        self.kept.push(entry.lsn);
        Ok(())
    }

    fn lose(&mut self, entry: &Entry<'_>) {
        assert_eq!(entry.body, body(entry.lsn));
        self.lost.push(entry.lsn);
    }
}

fn judged(sim: &SimFs, applied: Lsn, refuses: Lsn) -> (Provable, Keeper) {
    let mut keeper = Keeper { refuses, kept: Vec::new(), lost: Vec::new() };
    let found = provable(sim, &dir(), store(), applied, &mut keeper).expect("readable");
    let kept: Vec<_> = (applied + 1..=found.last_lsn).collect();
    assert_eq!((&keeper.kept, found.kept), (&kept, kept.len() as u64));
    assert_eq!(found.lost, keeper.lost.len() as u64);
    let ends = keeper.lost.first().copied().zip(keeper.lost.last().copied());
    assert_eq!(found.lost_lsns, ends);
    (found, keeper)
}

fn look(sim: &SimFs, applied: Lsn) -> Provable {
    judged(sim, applied, 0).0
}

/// Two sealed segments and a last one; all three hold several frames of two entries.
struct Sample {
    sim: SimFs,
    firsts: Vec<Lsn>,
    last: Lsn,
}

fn sample() -> Sample {
    let (sim, _, mut log) = start(false);
    while log.segments().list().len() < 3 {
        append_synced(&mut log, 2).expect("written");
    }
    for _ in 0..3 {
        append_synced(&mut log, 2).expect("written");
    }
    let firsts = log.segments().list().iter().map(|segment| segment.first_lsn).collect();
    Sample { firsts, last: log.written_lsn(), sim: sim.restart() }
}

impl Sample {
    fn path(&self, index: usize) -> PathBuf {
        segment(self.firsts[index])
    }

    fn frames(&self, index: usize) -> Vec<(usize, usize)> {
        frames(&self.sim.content(&self.path(index)).expect("the segment"))
    }

    /// With one segment changed.
    fn changed(&self, index: usize, change: impl FnOnce(&mut Vec<u8>)) -> SimFs {
        let sim = self.sim.restart();
        let mut bytes = sim.content(&self.path(index)).expect("the segment");
        change(&mut bytes);
        sim.set_content(&self.path(index), &bytes);
        sim
    }
}

fn place(found: &[Place]) -> (u64, u64, Lsn, &str) {
    let [place] = found else { panic!("one place: {found:?}") };
    (place.offset, place.bytes, place.lsn, &place.reason)
}

#[test]
fn a_whole_log_is_kept_from_the_snapshot_on_and_nothing_is_in_doubt() {
    let Sample { sim, firsts, last } = sample();
    for applied in [0, 1, firsts[1] - 1, firsts[1], last - 1, last] {
        let found = look(&sim, applied);
        let expected = Provable {
            last_lsn: last,
            kept: last - applied,
            highest_lsn: last,
            incarnation: 1,
            first_lsn: Some(1),
            ..Provable::default()
        };
        assert_eq!(found, expected, "behind {applied}");
    }
}

#[test]
fn a_log_that_ends_before_the_snapshot_is_in_doubt() {
    let Sample { sim, last, .. } = sample();
    let found = look(&sim, last + 3);
    assert_eq!((found.last_lsn, found.highest_lsn, found.kept), (last + 3, last + 3, 0));
    assert_eq!(found.stop, None);
    let doubt = format!("the log ends with LSN {last}, before the snapshot");
    assert_eq!(found.doubt, Some(doubt));
}

#[test]
fn rot_in_a_frame_ends_what_is_kept_and_what_follows_is_lost() {
    let sample = sample();
    let (at, end) = sample.frames(1)[1];
    let first = sample.firsts[1] + 2;
    let rotten = sample.changed(1, |bytes| bytes[at + 60] ^= 1);
    let found = look(&rotten, 0);
    assert_eq!(found.last_lsn, first - 1);
    assert_eq!(found.lost_lsns, Some((first + 2, sample.last)));
    let stop = found.stop.expect("a gap");
    assert_eq!((stop.path, stop.offset, stop.bytes), (sample.path(1), end as u64, 0));
    assert_eq!(
        (stop.lsn, stop.reason),
        (first, format!("LSN {first} to {} do not read", first + 1))
    );
    let (offset, bytes, lsn, reason) = place(&found.damage);
    assert_eq!((offset, bytes, lsn), (at as u64, (end - at) as u64, first));
    assert!(reason.starts_with("payload checksum"), "{reason}");
    assert_eq!(
        found.doubt.as_deref(),
        Some("what stood in the places that do not read is not known")
    );

    // The snapshot has what rotted: nothing is lost then, wherever it ends.
    for applied in [first + 1, first + 2, sample.last] {
        let found = look(&rotten, applied);
        assert_eq!((found.last_lsn, found.stop, found.lost), (sample.last, None, 0));
        assert_eq!((found.damage.len(), found.doubt), (1, None));
    }
    // A part of it is not enough.
    assert_eq!(look(&rotten, first).last_lsn, first);
}

#[test]
fn an_entry_that_cannot_be_kept_ends_what_is_kept() {
    let Sample { sim, last, .. } = sample();
    let (found, keeper) = judged(&sim, 3, 8);
    assert_eq!((found.last_lsn, keeper.lost), (7, (8..=last).collect()));
    let stop = found.stop.expect("a refusal");
    assert_eq!((stop.lsn, &*stop.reason), (8, "it does not fit"));
    assert_eq!(found.damage, []);
}

#[test]
fn bytes_that_do_not_read_at_the_end_leave_a_doubt() {
    let sample = sample();
    let (_, end) = *sample.frames(2).last().expect("frames");
    let found = look(&sample.changed(2, |bytes| bytes[end + 7] = 1), 0);
    let (offset, bytes, lsn, _) = place(&found.damage);
    assert_eq!((offset, bytes, lsn), (end as u64, 8, sample.last + 1));
    assert_eq!((found.last_lsn, found.stop), (sample.last, None));
    assert_eq!(found.doubt.as_deref(), Some("the log ends in bytes that do not read"));
    // The last frame torn, as a crash leaves it. Nothing vouches for it.
    let (at, _) = *sample.frames(2).last().expect("frames");
    let found = look(&sample.changed(2, |bytes| bytes[at + 60] ^= 1), 0);
    assert_eq!(found.last_lsn, sample.last - 2);
    assert_eq!(found.doubt.as_deref(), Some("the log ends in bytes that do not read"));
}

#[test]
fn what_was_durable_once_and_is_gone_leaves_a_doubt() {
    let sample = sample();
    // A successor says that everything before it was durable.
    let (at, _) = sample.frames(1)[0];
    let sim = sample.changed(1, |bytes| bytes[at..].fill(0));
    sim.remove_file(&sample.path(2)).expect("removed");
    let found = look(&sim, 0);
    assert_eq!((found.last_lsn, found.doubt), (sample.firsts[1] - 1, None), "an empty segment");
    sim.remove_file(&sample.path(1)).expect("removed");
    let found = look(&sim, 0);
    assert_eq!(found.doubt.as_deref(), Some("the segment behind the last, sealed one is missing"));
    let sim = sample.changed(1, |bytes| bytes[at..].fill(0));
    let blank = sim.content(&sample.path(2)).expect("the segment");
    sim.set_content(&sample.path(2), &[&blank[..64], &vec![0; blank.len() - 64]].concat());
    let found = look(&sim, 0);
    let vouched = sample.firsts[2] - 1;
    assert_eq!(found.doubt, Some(format!("LSN {vouched} was durable once")));
    assert_eq!(found.highest_lsn, vouched);
}

#[test]
fn a_short_file_is_named_and_leaves_a_doubt_unless_it_is_sealed() {
    let sample = sample();
    let (_, end) = *sample.frames(2).last().expect("frames");
    let missing = SEGMENT_BYTES as usize - end;
    let found = look(&sample.changed(2, |bytes| bytes.truncate(end)), 0);
    let reason = format!("the file is {missing} bytes too short");
    assert_eq!(place(&found.damage), (end as u64, 0, sample.last + 1, &*reason));
    assert_eq!(found.last_lsn, sample.last);
    assert_eq!(found.doubt.as_deref(), Some("the log ends in bytes that do not read"));

    let (_, end) = *sample.frames(1).last().expect("frames");
    let sealed = sample.changed(1, |bytes| bytes.truncate(end));
    sealed.remove_file(&sample.path(2)).expect("removed");
    let found = look(&sealed, 0);
    assert_eq!(found.damage.len(), 1);
    assert_eq!(found.doubt.as_deref(), Some("the segment behind the last, sealed one is missing"));
}

#[test]
fn a_damaged_or_foreign_header_is_named_and_costs_no_frame() {
    let sample = sample();
    let header = |uuid: u128, first_lsn: Lsn| {
        let id = SegmentId { uuid: uuid::Uuid::from_u128(uuid), first_lsn };
        SegmentHeader { id, segment_bytes: SEGMENT_BYTES, incarnation: 9 }.encode()
    };
    let ours = store().as_u128();
    let rotten = {
        let mut header = header(ours, sample.firsts[1]);
        header[20] ^= 1;
        header
    };
    for (header, reason) in [
        (rotten, "a damaged segment header: "),
        (header(5, sample.firsts[1]), "a segment of store 00000000-"),
        (header(ours, 77), "the segment from LSN 77, under another name"),
    ] {
        let found = look(&sample.changed(1, |bytes| bytes[..64].copy_from_slice(&header)), 0);
        let (offset, bytes, lsn, found_reason) = place(&found.damage);
        assert_eq!((offset, bytes, lsn), (0, 64, sample.firsts[1]));
        assert!(found_reason.starts_with(reason), "{found_reason}");
        assert_eq!((found.last_lsn, found.stop, found.doubt), (sample.last, None, None));
        assert_eq!(found.incarnation, 1, "it is not believed");
    }
    let found = look(&sample.changed(1, |bytes| bytes.truncate(63)), 0);
    assert_eq!(found.damage[0].reason, "63 bytes where a segment header should be");
}

#[test]
fn frames_of_an_older_opening_behind_a_newer_one_are_not_kept() {
    let sample = sample();
    let newer = |incarnation: u64| {
        let id = SegmentId { uuid: store(), first_lsn: sample.firsts[1] };
        let header = SegmentHeader { id, segment_bytes: SEGMENT_BYTES, incarnation };
        sample.changed(1, |bytes| bytes[..64].copy_from_slice(&header.encode()))
    };
    assert_eq!(look(&newer(1), 0).stop, None);
    let found = look(&newer(2), 0);
    assert_eq!((found.last_lsn, found.incarnation), (sample.firsts[1] - 1, 2));
    assert_eq!(found.stop.expect("an older one").reason, "incarnation 1 behind 2");
    // They are of no account where the snapshot has all of them, and are where it has not.
    assert_eq!(look(&newer(2), sample.last).stop, None);
    let stop = look(&newer(2), sample.last - 1).stop.expect("an older one");
    assert_eq!(stop.lsn, sample.last);
}

#[test]
fn a_frame_that_continues_another_one_is_not_kept() {
    let sample = sample();
    let (at, _) = *sample.frames(2).last().expect("frames");
    let changed = sample.changed(2, |bytes| {
        bytes[at + 28] ^= 1;
        reseal(bytes, sample.firsts[2], at);
    });
    let first = sample.last - 1;
    let found = look(&changed, 0);
    assert_eq!(found.last_lsn, first - 1);
    let stop = found.stop.expect("a broken link");
    assert_eq!((stop.lsn, &*stop.reason), (first, "a frame that continues another one"));
    assert_eq!(look(&changed, first).stop.expect("a part of it").lsn, sample.last);
    assert_eq!(look(&changed, sample.last).stop, None, "the snapshot has it");
}

#[test]
fn what_a_newer_release_wrote_is_refused() {
    let sample = sample();
    let (at, _) = sample.frames(1)[0];
    let refusal = |sim: &SimFs| {
        let mut keeper = Keeper { refuses: 0, kept: Vec::new(), lost: Vec::new() };
        provable(sim, &dir(), store(), 0, &mut keeper).expect_err("newer")
    };
    let error = refusal(&sample.changed(1, |bytes| {
        bytes[at + 56 + 3] = 1;
        reseal(bytes, sample.firsts[1], at);
    }));
    let expected = at as u64 + 56;
    assert!(
        matches!(error, LogError::Newer { offset, field: "entry flags", .. } if offset == expected),
        "{error}"
    );
    // Behind rot as well.
    let (next, _) = sample.frames(1)[1];
    let error = refusal(&sample.changed(1, |bytes| {
        bytes[at + 60] ^= 1;
        bytes[next + 8] = 200;
        reseal(bytes, sample.firsts[1], next);
    }));
    assert!(matches!(error, LogError::Newer { field: "frame kind", .. }), "{error}");
}

#[test]
fn a_hundred_damaged_places_are_listed_and_the_rest_counted() {
    for (damaged, listed, more) in [(100, 100, 0), (103, 100, 3)] {
        let sim = SimFs::new(0);
        sim.create_dir(&dir()).expect("created");
        (1..=damaged).for_each(|first_lsn| sim.set_content(&segment(first_lsn), b"short"));
        let found = look(&sim, 0);
        let all = found.damage.len() as u64 + found.more_damage;
        // Each is too short for a header, and holds nothing else.
        assert_eq!((found.damage.len(), found.more_damage, all), (listed, more, damaged));
    }
}
