//! Blocks in the wrong place: every frame's checksums are bound to its store, its segment and its
//! offset, so that a copy of it verifies nowhere else.

use sharestate::log::SegmentId;
use sharestate::log::frame::{FrameError, decode_frame};
use uuid::Uuid;

use crate::history::HISTORY;
use crate::image::{End, FULL, Image, Opened};
use crate::subject::Subject;

/// Four sealed segments and a last one.
fn image() -> Image {
    Image::new(4, End::Marked)
}

fn sealed(image: &Image, index: usize) -> Subject {
    let first = image.segments[index];
    // What the snapshot holds need not be read again.
    Subject::new("sealed", image.applied_at(first - 1), first, None)
}

fn last(image: &Image) -> Subject {
    let first = image.segments[4];
    Subject::new("last", image.applied_at(first - 1), first, Some(End::Marked))
}

/// Puts a frame's bytes at an offset, as far as there is room.
fn put(bytes: &mut [u8], at: usize, frame: &[u8]) {
    let room = frame.len().min(bytes.len() - at);
    bytes[at..at + room].copy_from_slice(&frame[..room]);
}

/// What stands here is refused by its checksum already, not only by its place in the sequence.
#[track_caller]
fn assert_bound(subject: &Subject, bytes: &[u8], at: usize) {
    let name = subject.path.file_stem().and_then(|name| name.to_str()).expect("a name");
    let id = SegmentId { uuid: HISTORY.uuid, first_lsn: name.parse().expect("an LSN") };
    let decoded = decode_frame(&id, &bytes[at..], at as u64);
    assert!(matches!(decoded, Err(FrameError::HeaderChecksum { .. })), "{at}: {decoded:?}");
}

#[test]
fn a_frame_copied_over_another_never_verifies() {
    let image = image();
    let (mut cases, mut whole_stores) = (0, 0);
    for mut subject in [sealed(&image, 1), last(&image)] {
        let frames = subject.frames.clone();
        for (i, (start, end)) in frames.iter().enumerate() {
            for (j, (target, _)) in frames.iter().enumerate().filter(|(j, _)| *j != i) {
                let mut bytes = subject.good.clone();
                put(&mut bytes, *target, &subject.good[*start..*end]);
                assert_bound(&subject, &bytes, *target);
                subject.check_anywhere(&bytes, &|| format!("frame {i} over {j}"));
                cases += 1;
            }
        }
        whole_stores += subject.whole_stores;
    }
    assert!(cases >= 2 * 4_032, "{cases}");
    println!("copies={cases} whole-stores={whole_stores} undetected=0");
}

#[test]
fn two_frames_exchanged_never_verify() {
    let image = image();
    let mut cases = 0;
    for mut subject in [sealed(&image, 1), last(&image)] {
        let frames = subject.frames.clone();
        for (i, first) in frames.iter().enumerate() {
            for (j, second) in frames.iter().enumerate().skip(i + 1) {
                let mut bytes = subject.good.clone();
                put(&mut bytes, first.0, &subject.good[second.0..second.1]);
                put(&mut bytes, second.0, &subject.good[first.0..first.1]);
                assert_bound(&subject, &bytes, first.0);
                subject.check_anywhere(&bytes, &|| format!("frames {i} and {j}"));
                cases += 1;
            }
        }
    }
    assert!(cases >= 2 * 2_016, "{cases}");
    println!("swaps={cases} undetected=0");
}

#[test]
fn a_frame_from_the_same_place_of_another_segment_never_verifies() {
    let image = image();
    let mut cases = 0;
    for target in 0..5 {
        let mut subject = if target == 4 { last(&image) } else { sealed(&image, target) };
        let frames = subject.frames.clone();
        for origin in (0..4).filter(|origin| *origin != target) {
            let theirs = image.bytes(&image.segment(image.segments[origin]));
            for (start, end) in frames.iter().take(usize::try_from(FULL).expect("small")) {
                let mut bytes = subject.good.clone();
                bytes[*start..*end].copy_from_slice(&theirs[*start..*end]);
                let what = || format!("segment {origin} at {start} of segment {target}");
                assert_bound(&subject, &bytes, *start);
                subject.check_anywhere(&bytes, &what);
                cases += 1;
            }
        }
    }
    assert!(cases >= 768, "{cases}");
    println!("cross-segment={cases} undetected=0");
}

#[test]
fn a_frame_from_the_same_place_of_another_store_never_verifies() {
    let image = image();
    // The same entries in the same places, of a store with another identity.
    let foreign = Image::of_store(Uuid::from_u128(0xf0e1), 4, End::Marked);
    let mut cases = 0;
    for mut subject in [sealed(&image, 2), last(&image)] {
        let theirs = foreign.bytes(&subject.path).to_vec();
        assert_eq!(crate::image::frames(&theirs), subject.frames, "laid out alike");
        let frames = subject.frames.clone();
        for (start, end) in frames {
            let mut bytes = subject.good.clone();
            bytes[start..end].copy_from_slice(&theirs[start..end]);
            assert_ne!(bytes, subject.good);
            assert_bound(&subject, &bytes, start);
            subject.check_anywhere(&bytes, &|| format!("a foreign frame at {start}"));
            cases += 1;
        }
        // Nor does all of it, header included.
        match subject.read(&theirs, &|| "a foreign segment".to_owned()) {
            Opened::Refused(error) => {
                assert!(error.to_string().contains("belongs to store"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(cases >= 64, "{cases}");
    println!("foreign={cases} undetected=0");
}
