//! Files cut short, at every byte.

use sharestate::OpenError;
use sharestate::log::{LogError, Lsn};

use crate::image::{Opened, SEGMENT_BYTES};
use crate::subject::{Subject, subjects};

/// What the log is worth when its last segment ends here: the last LSN of the frames before.
fn whole_before(subject: &Subject, length: usize) -> Lsn {
    let whole = subject.frames.iter().filter(|(_, end)| *end <= length).count() as u64;
    let first = *subject.image.segments.last().expect("a segment");
    (first - 1 + whole).min(subject.image.last_lsn)
}

fn check(subject: &mut Subject, length: usize) {
    let name = subject.name;
    let what = || format!("{name}, cut to {length}");
    let bytes = subject.good[..length].to_vec();
    let frame = subject.frames.iter().find(|(_, end)| length < *end);
    let place = frame.map_or(subject.end_of_frames(), |(start, _)| *start);
    let place = if length < 64 { 0 } else { place as u64 };
    let last = whole_before(subject, length);
    let may_open = subject.end.is_some() && length >= 64 && last >= subject.image.applied;
    match subject.read(&bytes, &what) {
        Opened::Whole(lsn) if length == SEGMENT_BYTES => assert_eq!(lsn, subject.image.last_lsn),
        Opened::Torn(lsn, torn) if may_open => {
            assert_eq!((lsn, torn.offset), (last, place), "{}", what());
            assert_eq!(torn.missing_bytes, (SEGMENT_BYTES - length) as u64, "{}", what());
        }
        Opened::Refused(OpenError::Log(
            LogError::Corrupt { path, offset, .. } | LogError::BehindSnapshot { path, offset, .. },
        )) if !may_open => {
            assert_eq!((&path, offset), (&subject.path, place), "{}", what());
        }
        other => panic!("{}: {other:?}", what()),
    }
}

#[test]
fn a_segment_cut_at_any_byte_is_named_or_loses_only_what_nothing_vouches_for() {
    let mut subjects = subjects();
    // A snapshot of half the last segment vouches for that half.
    let half = subjects[1].image.last_lsn - 32;
    let image = subjects[1].image.applied_at(half);
    let (last, end) = (image.segments[1], subjects[1].end);
    subjects.push(Subject::new("last, half in the snapshot", image, last, end));
    let (mut cases, mut whole_stores) = (0, 0);
    for mut subject in subjects {
        for length in 0..=SEGMENT_BYTES {
            check(&mut subject, length);
        }
        cases += subject.cases;
        whole_stores += subject.whole_stores;
    }
    assert_eq!(cases, (SEGMENT_BYTES + 1) * 4);
    println!("truncations={cases} whole-stores={whole_stores} undetected=0");
}

#[test]
fn bytes_behind_the_end_of_a_segment_are_refused() {
    // No crash leaves them: a segment gets its length before it gets its name.
    let mut cases = 0;
    for mut subject in subjects() {
        for more in [1, 8, 511, 512, 4_096, 1 << 20, 4 << 20] {
            for filler in [0, 0x53] {
                let mut bytes = subject.good.clone();
                bytes.resize(SEGMENT_BYTES + more, filler);
                let what = || format!("{more} more bytes");
                match subject.read(&bytes, &what) {
                    Opened::Refused(OpenError::Log(LogError::Corrupt { path, offset, .. })) => {
                        assert_eq!((&path, offset), (&subject.path, SEGMENT_BYTES as u64));
                    }
                    other => panic!("{}: {other:?}", what()),
                }
                cases += 1;
            }
        }
    }
    println!("longer-files={cases} undetected=0");
}
