//! Zeros where something stood: lost writes and lost sectors at the end of the log, and segments
//! without frames.

use sharestate::OpenError;
use sharestate::log::LogError;

use crate::image::{End, Image, Opened, SEGMENT_BYTES};
use crate::subject::{Subject, subjects};

/// The last segments only.
fn last_segments() -> Vec<Subject> {
    subjects().into_iter().filter(|subject| subject.end.is_some()).collect()
}

#[test]
fn zeros_from_any_byte_on_leave_a_prefix_or_are_refused_when_the_snapshot_has_more() {
    let (mut cases, mut refused) = (0, 0);
    let mut subjects = last_segments();
    let image = subjects[0].image.applied_at(subjects[0].image.last_lsn - 32);
    let last = image.segments[1];
    subjects.push(Subject::new("half in the snapshot", image, last, Some(End::Marked)));
    for mut subject in subjects {
        let (name, first) = (subject.name, subject.image.segments[1]);
        for from in 64..SEGMENT_BYTES {
            let mut bytes = subject.good.clone();
            bytes[from..].fill(0);
            let same =
                |(start, end): &&(usize, usize)| bytes[*start..*end] == subject.good[*start..*end];
            let whole = subject.frames.iter().take_while(same).count();
            let last = (first - 1 + whole as u64).min(subject.image.last_lsn);
            let at_edge = subject.frames.get(whole).is_none_or(|(start, _)| *start >= from);
            let what = || format!("{name}, zeros from {from}");
            match subject.read(&bytes, &what) {
                Opened::Whole(lsn) => assert!(lsn == last && at_edge, "{}", what()),
                Opened::Torn(lsn, _) => assert!(lsn == last && !at_edge, "{}", what()),
                Opened::Refused(error) => {
                    assert!(last < subject.image.applied, "{}: {error}", what());
                    refused += 1;
                }
            }
        }
        cases += subject.cases;
    }
    assert!(refused > 7_000, "{refused}");
    println!("zero-tails={cases} refused={refused} lost-of-what-was-vouched-for=0");
}

#[test]
fn a_lost_sector_is_refused_when_anything_written_later_shows_it() {
    let (mut cases, mut cut) = (0, 0);
    for size in [512, 4_096] {
        for mut subject in last_segments() {
            let name = subject.name;
            for start in (64..SEGMENT_BYTES).step_by(8) {
                let mut bytes = subject.good.clone();
                bytes[start..(start + size).min(SEGMENT_BYTES)].fill(0);
                if bytes == subject.good {
                    continue;
                }
                let what = || format!("{name}, {size} zeros from {start}");
                // A frame that is whole behind the hole was written after a sync of it.
                let later = subject.frames.iter().any(|(frame, _)| *frame >= start + size);
                match subject.read(&bytes, &what) {
                    Opened::Refused(error) => assert!(later, "{}: {error}", what()),
                    Opened::Torn(..) | Opened::Whole(_) => {
                        assert!(!later, "{}: lost", what());
                        cut += 1;
                    }
                }
                cases += 1;
            }
        }
    }
    assert!(cut > 0);
    println!("lost-sectors={cases} cut={cut} lost-of-what-was-vouched-for=0");
}

#[test]
fn rot_in_a_cleanly_closed_log_is_refused_to_the_last_entry() {
    // A clean close takes a checkpoint, which vouches for the last frame as well.
    let image = Image::new(1, End::Bare);
    let image = image.applied_at(image.last_lsn);
    let last = image.segments[1];
    let mut subject = Subject::new("closed", image, last, Some(End::Bare));
    for at in 0..subject.end_of_frames() {
        let mut bytes = subject.good.clone();
        bytes[at] ^= 1 << (at % 8);
        match subject.read(&bytes, &|| format!("byte {at}")) {
            Opened::Refused(OpenError::Log(LogError::Corrupt { path, .. })) => {
                assert_eq!(path, subject.path);
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
    println!("flips-after-a-clean-close={} undetected=0", subject.cases);
}

#[test]
fn relaxed_frames_leave_a_prefix_whichever_of_them_is_lost() {
    let image = Image::relaxed(60);
    let last = image.last_segment();
    let good = image.bytes(&last).to_vec();
    let frames = crate::image::frames(&good);
    let disk = image.disk();
    let mut cases = 0;
    for (index, (start, end)) in frames.iter().enumerate() {
        for damage in 0..3 {
            let mut bytes = good.clone();
            match damage {
                0 => bytes[*start..*end].fill(0),
                1 => bytes[*start + 60] ^= 1,
                _ => bytes[*start] ^= 1,
            }
            let disk = disk.restart();
            disk.set_content(&last, &bytes);
            match image.open(&disk, &|| format!("frame {index}, damage {damage}")) {
                Opened::Torn(lsn, _) => assert_eq!(lsn, index as u64),
                Opened::Whole(lsn) => assert!(index + 1 == frames.len() && lsn == index as u64),
                other => panic!("frame {index}, damage {damage}: {other:?}"),
            }
            cases += 1;
        }
    }
    println!("relaxed-frames-lost={cases} invented=0");
}

#[test]
fn a_last_segment_without_frames_is_a_normal_end_and_one_without_a_header_is_not() {
    let image = Image::new(2, End::Marked);
    let path = image.last_segment();
    let before = image.segments[2] - 1;
    let header = image.bytes(&path)[..64].to_vec();
    let mut blank = header.clone();
    blank.resize(SEGMENT_BYTES, 0);
    let what = || "no frames".to_owned();
    let opened = image.open_with(&path, &blank, &what);
    assert!(matches!(opened, Opened::Whole(lsn) if lsn == before), "{opened:?}");
    let opened = image.open_with(&path, &header, &what);
    assert!(matches!(&opened, Opened::Torn(lsn, _) if *lsn == before), "{opened:?}");
    for length in [0, 1, 8, 32, 63] {
        let opened = image.open_with(&path, &header[..length], &what);
        assert!(matches!(opened, Opened::Refused(_)), "{length}: {opened:?}");
        // Nor is a file of the right length with half a header.
        let mut half = header[..length].to_vec();
        half.resize(SEGMENT_BYTES, 0);
        let opened = image.open_with(&path, &half, &what);
        assert!(matches!(opened, Opened::Refused(_)), "{length}: {opened:?}");
    }
    // Two of them in a row are not what an unfinished rollover leaves.
    let middle = image.segment(image.segments[1]);
    let disk = image.disk();
    let mut bytes = image.bytes(&middle).to_vec();
    bytes[64..].fill(0);
    disk.set_content(&middle, &bytes);
    disk.set_content(&path, &blank);
    let opened = image.open(&disk, &what);
    assert!(matches!(opened, Opened::Refused(_)), "{opened:?}");
}
