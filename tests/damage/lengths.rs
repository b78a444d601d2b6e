//! Lengths and counts that lie, with wrong checksums and with right ones: bounded by the bytes that
//! are there before anything is allocated.

use sharestate::OpenError;
use uuid::Uuid;

use crate::history::HISTORY;
use crate::image::{Opened, SEGMENT_BYTES};
use crate::subject::{Subject, subjects};

/// What a read may allocate beyond what the same read of undamaged bytes does.
const ALLOWANCE: u64 = SEGMENT_BYTES as u64 + (64 << 10);

/// The most bytes that this thread held at once, beyond those it held before.
fn peak<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let mut answer = None;
    let info = allocation_counter::measure(|| answer = Some(run()));
    assert!(info.bytes_max > 0, "allocations are counted");
    (answer.expect("it ran"), info.bytes_max)
}

/// Gives a changed frame the checksums that a writer would have given it.
fn reseal(bytes: &mut [u8], uuid: Uuid, first_lsn: u64, at: usize) {
    let payload = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().expect("4 bytes")) as usize;
    let mut seed = crc32fast::Hasher::new();
    seed.update(uuid.as_bytes());
    seed.update(&first_lsn.to_le_bytes());
    seed.update(&(at as u64).to_le_bytes());
    let mut hasher = seed.clone();
    hasher.update(&bytes[at + 8..at + 48]);
    let end = at.saturating_add(56).saturating_add(payload).min(bytes.len());
    hasher.update(&bytes[at + 56..end]);
    bytes[at + 48..at + 52].copy_from_slice(&hasher.finalize().to_le_bytes());
    seed.update(&bytes[at + 8..at + 56]);
    bytes[at + 4..at + 8].copy_from_slice(&seed.finalize().to_le_bytes());
}

fn first_lsn(subject: &Subject) -> u64 {
    let name = subject.path.file_stem().and_then(|name| name.to_str()).expect("a name");
    name.parse().expect("an LSN")
}

#[test]
fn a_frame_that_lies_about_its_length_or_count_is_refused_within_the_bytes_that_are_there() {
    let (mut cases, mut most) = (0, 0);
    for mut subject in subjects() {
        let (name, good, first) = (subject.name, subject.good.clone(), first_lsn(&subject));
        let (_, usual) = peak(|| subject.image.scan(&subject.disk.restart(), &|| name.into()));
        for (at, _) in subject.frames.clone() {
            let max = u32::try_from(SEGMENT_BYTES - at - 56).expect("small");
            for value in [0, 1, max - 1, max, max + 1, (1 << 31) - 1, 1 << 31, u32::MAX] {
                for (field, resealed) in [(12, false), (12, true), (24, false), (24, true)] {
                    let mut bytes = good.clone();
                    bytes[at + field..at + field + 4].copy_from_slice(&value.to_le_bytes());
                    if bytes == good {
                        continue;
                    }
                    if resealed {
                        reseal(&mut bytes, HISTORY.uuid, first, at);
                    }
                    let what = || format!("{name}, frame at {at}: {value} at {field}, {resealed}");
                    let disk = subject.disk.restart();
                    disk.set_content(&subject.path, &bytes);
                    let (_, bytes_max) = peak(|| subject.image.scan(&disk, &what));
                    let more = bytes_max.saturating_sub(usual);
                    assert!(more <= ALLOWANCE, "{}: {more} bytes more", what());
                    most = most.max(more);
                    subject.check_anywhere(&bytes, &what);
                    cases += 1;
                }
            }
        }
    }
    assert!(cases >= 1_024, "{cases}");
    println!("odd-lengths={cases} undetected=0 most-bytes-allocated-beyond-the-usual={most}");
}

#[test]
fn an_entry_that_lies_about_a_length_under_right_checksums_is_refused_within_its_frame() {
    // Where a write's body holds the length of the group id and the number of batches.
    const ENTRY: usize = 56;
    const BODY: usize = ENTRY + 8;
    const BATCHES: usize = BODY + 35 + 8 + 4 + 8;
    let (mut cases, mut most) = (0, 0);
    let subject = subjects().remove(0);
    let (good, first) = (subject.good.clone(), first_lsn(&subject));
    let what = || "undamaged".to_owned();
    let (_, usual) = peak(|| subject.image.open_with(&subject.path, &good, &what));
    for (at, end) in subject.frames.iter().filter(|(start, end)| end - start > 56) {
        let max = (end - at - BODY) as u64;
        let big = [(1 << 31) - 1, 1 << 31, u64::from(u32::MAX), 1 << 40, u64::MAX];
        for value in [0, 1, max - 1, max, max + 1].into_iter().chain(big) {
            for (field, width) in [(ENTRY + 4, 4), (BODY, 8), (BATCHES, 8)] {
                let mut bytes = good.clone();
                let place = at + field;
                bytes[place..place + width].copy_from_slice(&value.to_le_bytes()[..width]);
                if bytes == good {
                    continue;
                }
                reseal(&mut bytes, HISTORY.uuid, first, *at);
                let what = || format!("frame at {at}: {value} at {field}");
                let (opened, bytes_max) =
                    peak(|| subject.image.open_with(&subject.path, &bytes, &what));
                let more = bytes_max.saturating_sub(usual);
                assert!(more <= ALLOWANCE, "{}: {more} bytes more", what());
                most = most.max(more);
                let refused =
                    matches!(opened, Opened::Refused(OpenError::Log(_) | OpenError::Entry { .. }));
                assert!(refused, "{}: {opened:?}", what());
                cases += 1;
            }
        }
    }
    assert!(cases >= 1_024, "{cases}");
    println!("odd-entry-lengths={cases} undetected=0 most-bytes-allocated-beyond-the-usual={most}");
}
