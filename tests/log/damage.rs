//! Damage of every kind is detected, or changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{LogError, Lsn, Scope, TailVerdict, segment_file_name};

/// A log of a sealed segment and a last one, which ends with a mark or with a frame that nothing
/// vouches for.
struct Sample {
    sim: SimFs,
    fs: Arc<dyn Fs>,
    sealed: PathBuf,
    last: PathBuf,
    good_last: Vec<u8>,
    entries: Lsn,
}

fn sample(marked: bool, relaxed: bool) -> Sample {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, relaxed);
    while log.segments().list().len() == 1 {
        append_synced(&mut log, 3).expect("written");
    }
    for entries in [2, 1, 3, 1] {
        append_synced(&mut log, entries).expect("written");
    }
    if marked {
        log.mark().expect("marked");
    }
    let segments = log.segments().list();
    let entries = log.written_lsn();
    let (sealed, last) = (segments[0].path.clone(), segments[1].path.clone());
    let good_last = sim.content(&last).expect("the segment");
    Sample { sim, fs, sealed, last, good_last, entries }
}

/// What became of a damaged log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Refused,
    Torn,
    Unchanged,
}

impl Sample {
    /// What the frames of the last segment that are still whole vouch for.
    fn vouched(&self) -> Lsn {
        let bytes = self.sim.content(&self.last).expect("the segment");
        let whole = frames(&self.good_last)
            .into_iter()
            .filter(|(from, to)| bytes.get(*from..*to) == Some(&self.good_last[*from..*to]));
        whole.map(|(from, _)| durable_mark(&self.good_last, from)).max().unwrap_or(0)
    }

    /// Reads the damaged log; anything but a refusal must deliver a prefix with all that something
    /// undamaged vouches for.
    fn outcome(&self, what: &str) -> Outcome {
        match read(&self.fs, 0, Scope::Tail) {
            Err(error) => {
                assert!(!matches!(error, LogError::Overtaken { .. }), "{what}: {error}");
                Outcome::Refused
            }
            Ok((lsns, scanned)) => {
                let last = lsns.last().copied().unwrap_or(0);
                assert_eq!(lsns, (1..=last).collect::<Vec<_>>(), "{what}");
                assert!(last >= self.vouched(), "{what}: lost down to {last}");
                assert!(last <= self.entries, "{what}: invented {last}");
                match scanned.report().verdict {
                    TailVerdict::Torn(_) => Outcome::Torn,
                    _ if last == self.entries => Outcome::Unchanged,
                    _ => panic!("{what}: silently lost down to {last}"),
                }
            }
        }
    }
}

#[test]
fn every_bit_flip_is_detected_in_a_sealed_and_in_the_last_segment() {
    for marked in [false, true] {
        let sample = sample(marked, false);
        for (role, path) in [("sealed", &sample.sealed), ("last", &sample.last)] {
            let good = sample.sim.content(path).expect("the segment");
            let mut counts = [0; 3];
            for bit in 0..good.len() * 8 {
                let mut bytes = good.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                sample.sim.set_content(path, &bytes);
                let outcome = sample.outcome(&format!("{role}, bit {bit}"));
                counts[outcome as usize] += 1;
                assert_ne!(outcome, Outcome::Unchanged, "{role}, bit {bit}: not detected");
                if role == "sealed" {
                    assert_eq!(outcome, Outcome::Refused, "bit {bit}");
                }
            }
            sample.sim.set_content(path, &good);
            println!(
                "{role}, marked {marked}: {} bits, {} refused, {} torn",
                good.len() * 8,
                counts[0],
                counts[1]
            );
        }
        assert_eq!(sample.outcome("undamaged"), Outcome::Unchanged);
    }
}

#[test]
fn every_truncation_is_detected_in_a_sealed_and_in_the_last_segment() {
    for marked in [false, true] {
        let sample = sample(marked, false);
        for (role, path) in [("sealed", &sample.sealed), ("last", &sample.last)] {
            let good = sample.sim.content(path).expect("the segment");
            let mut torn = 0;
            for length in 0..good.len() {
                sample.sim.set_content(path, &good[..length]);
                let outcome = sample.outcome(&format!("{role}, cut to {length}"));
                assert_ne!(outcome, Outcome::Unchanged, "{role}, cut to {length}: not detected");
                if role == "sealed" {
                    assert_eq!(outcome, Outcome::Refused, "cut to {length}");
                }
                torn += usize::from(outcome == Outcome::Torn);
            }
            println!("{role}, marked {marked}: {} lengths, {torn} torn", good.len());
            let longer = [&good[..], &[0]].concat();
            sample.sim.set_content(path, &longer);
            assert_eq!(sample.outcome("longer"), Outcome::Refused);
            sample.sim.set_content(path, &good);
        }
    }
}

#[test]
fn a_repaired_segment_has_its_length_back() {
    let sample = sample(true, false);
    for length in [64, 200, 1000, 4095] {
        let copy = sample.sim.restart();
        copy.set_content(&sample.last, &sample.good_last[..length]);
        let fs: Arc<dyn Fs> = Arc::new(copy.clone());
        let (_, scanned) = read(&fs, 0, Scope::Tail).expect("readable");
        assert_eq!(scanned.report().segments[1].bytes, length as u64);
        let (mut log, done) = scanned.repair(&quarantine(), 2, options(false)).expect("repaired");
        assert_eq!(done.cut.expect("a cut").missing_bytes, SEGMENT_BYTES - length as u64);
        assert_eq!(log.segments().bytes(), 2 * SEGMENT_BYTES);
        assert_eq!(copy.content(&sample.last).expect("there").len() as u64, SEGMENT_BYTES);
        append_synced(&mut log, 4).expect("written");
        read(&fs, 0, Scope::All).expect("whole again");
    }
}

#[test]
fn every_byte_overwritten_is_detected() {
    let sample = sample(true, false);
    let mut cases = 0;
    for (role, path) in [("sealed", &sample.sealed), ("last", &sample.last)] {
        let good = sample.sim.content(path).expect("the segment");
        for at in 0..good.len() {
            for value in [0, 0xff, good[at].wrapping_add(1), 0x53] {
                if value == good[at] {
                    continue;
                }
                let mut bytes = good.clone();
                bytes[at] = value;
                sample.sim.set_content(path, &bytes);
                let outcome = sample.outcome(&format!("{role}, byte {at} = {value}"));
                assert_ne!(outcome, Outcome::Unchanged, "{role}, byte {at} = {value}");
                cases += 1;
            }
        }
        sample.sim.set_content(path, &good);
    }
    println!("{cases} byte overwrites");
}

#[test]
fn zeroed_sectors_are_detected() {
    let sample = sample(true, false);
    for path in [&sample.sealed, &sample.last] {
        let good = sample.sim.content(path).expect("the segment");
        for start in (0..good.len()).step_by(64) {
            let end = (start + 512).min(good.len());
            let mut bytes = good.clone();
            bytes[start..end].fill(0);
            if bytes == good {
                continue;
            }
            sample.sim.set_content(path, &bytes);
            let outcome = sample.outcome(&format!("zeros from {start}"));
            assert_ne!(outcome, Outcome::Unchanged, "zeros from {start}");
        }
        sample.sim.set_content(path, &good);
    }
}

#[test]
fn frames_moved_or_copied_within_and_between_segments_never_verify() {
    let sample = sample(true, false);
    let mut cases = 0;
    let sealed = sample.sim.content(&sample.sealed).expect("the segment");
    let last = sample.sim.content(&sample.last).expect("the segment");
    for (from, to, path) in [
        (&sealed, &sealed, &sample.sealed),
        (&last, &last, &sample.last),
        (&sealed, &last, &sample.last),
        (&last, &sealed, &sample.sealed),
    ] {
        for (start, end) in frames(from) {
            for (target, _) in frames(to) {
                let mut bytes = to.clone();
                let room = bytes.len() - target;
                let frame = &from[start..end];
                let length = frame.len().min(room);
                bytes[target..target + length].copy_from_slice(&frame[..length]);
                if bytes == *to {
                    continue;
                }
                sample.sim.set_content(path, &bytes);
                let outcome = sample.outcome(&format!("{start} over {target}"));
                assert_ne!(outcome, Outcome::Unchanged, "{start} over {target}");
                cases += 1;
            }
        }
        sample.sim.set_content(path, to);
    }
    println!("{cases} copies");
    assert!(cases > 100);
}

#[test]
fn a_whole_segment_in_the_place_of_another_is_refused() {
    let sample = sample(true, false);
    let sealed = sample.sim.content(&sample.sealed).expect("the segment");
    let last = sample.sim.content(&sample.last).expect("the segment");
    sample.sim.set_content(&sample.last, &sealed);
    let error = read(&sample.fs, 0, Scope::Tail).expect_err("misnamed");
    assert!(matches!(error, LogError::Misnamed { found: 1, .. }), "{error}");
    sample.sim.set_content(&sample.last, &last);
    sample.sim.set_content(&sample.sealed, &last);
    let error = read(&sample.fs, 0, Scope::Tail).expect_err("misnamed");
    assert!(matches!(error, LogError::Misnamed { expected: 1, .. }), "{error}");
}

#[test]
fn each_missing_segment_and_each_missing_pair_is_named() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    while log.segments().list().len() < 10 {
        append_synced(&mut log, 3).expect("written");
    }
    let segments = log.segments().list();
    let mut cases = 0;
    for first in 0..segments.len() {
        for second in first..segments.len() {
            let copy = sim.restart();
            let mut gone = vec![&segments[first], &segments[second]];
            gone.dedup();
            for segment in gone {
                copy.remove_file(&segment.path).expect("removed");
            }
            let fs: Arc<dyn Fs> = Arc::new(copy);
            let error = read(&fs, 0, Scope::Tail).expect_err("a gap");
            match error {
                LogError::Missing { first: lsn, .. } => {
                    assert_eq!(lsn, segments[first].first_lsn);
                }
                LogError::MissingSuccessor { next_lsn, .. } => {
                    assert_eq!(next_lsn, segments[first].first_lsn);
                }
                other => panic!("{first} and {second} missing: {other}"),
            }
            cases += 1;
        }
        let copy = sim.restart();
        copy.set_content(&segments[first].path, b"");
        let fs: Arc<dyn Fs> = Arc::new(copy);
        let error = read(&fs, 0, Scope::Tail).expect_err("an empty file");
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
        cases += 1;
    }
    println!("{cases} cases");
    assert_eq!(cases, 10 + 45 + 10);
}

#[test]
fn a_purged_segment_put_back_is_never_replayed() {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    while log.segments().list().len() < 6 {
        append_synced(&mut log, 3).expect("written");
    }
    let segments = log.segments().list();
    let border = segments[3].first_lsn;
    for (back, applied) in (0..3).flat_map(|back| [(back, border - 1), (back, border + 2)]) {
        let copy = sim.restart();
        for (index, segment) in segments[..3].iter().enumerate() {
            if index != back {
                copy.remove_file(&segment.path).expect("removed");
            }
        }
        let fs: Arc<dyn Fs> = Arc::new(copy);
        let (lsns, _) = read(&fs, applied, Scope::Tail).expect("the tail is whole");
        assert_eq!(lsns.first(), Some(&(applied + 1)), "{back}");
        let (lsns, scanned) = scan_all_lsns(&fs, applied);
        assert!(lsns.last() == Some(&log.written_lsn()));
        let unfinished = &scanned.report().unfinished_purge;
        // The one directly before the rest is no gap: the purge just went less far.
        assert_eq!(unfinished.len(), usize::from(back < 2), "{back}");
        scanned.repair(&quarantine(), 2, options(false)).expect("repaired");
        let name = segment_file_name(segments[back].first_lsn);
        assert_eq!(fs.exists(&dir().join(name)).expect("answer"), back == 2);
    }
}

/// Like `read` with all segments, where a gap is allowed.
fn scan_all_lsns(fs: &Arc<dyn Fs>, applied: Lsn) -> (Vec<Lsn>, sharestate::log::ScannedLog) {
    let mut lsns = Vec::new();
    let scanned =
        sharestate::log::scan(fs.clone(), &dir(), store(), applied, Scope::All, &mut |entry| {
            lsns.push(entry.lsn);
            Ok::<(), std::convert::Infallible>(())
        });
    (lsns, scanned.expect("readable"))
}
