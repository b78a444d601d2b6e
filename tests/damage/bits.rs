//! Rot: every single bit of a segment, every byte replaced, and random damage in several places.
//!
//! There is no byte of a segment that nothing covers: headers and payloads have checksums, padding
//! and what stands behind the last frame must be zero.

use crate::effort::{Random, random_cases};
use crate::image::SEGMENT_BYTES;
use crate::subject::subjects;

#[test]
fn a_flipped_bit_anywhere_is_detected() {
    let (mut cases, mut whole_stores) = (0, 0);
    for mut subject in subjects() {
        let mut bytes = subject.good.clone();
        let name = subject.name;
        for bit in 0..SEGMENT_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            subject.check(bit / 8, &bytes, &|| format!("{name}, bit {bit}"));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        cases += subject.cases;
        whole_stores += subject.whole_stores;
    }
    assert_eq!(cases, SEGMENT_BYTES * 8 * 3);
    println!("bit-flips={cases} whole-stores={whole_stores} uncovered-bytes=0 undetected=0");
}

#[test]
fn a_replaced_byte_anywhere_is_detected() {
    let mut cases = 0;
    let mut random = Random(3);
    for mut subject in subjects() {
        let mut bytes = subject.good.clone();
        let name = subject.name;
        for at in 0..SEGMENT_BYTES {
            let good = bytes[at];
            let others = [0, 0xff, good.wrapping_add(1), random.other_byte(good)];
            for value in others.into_iter().filter(|value| *value != good) {
                bytes[at] = value;
                subject.check(at, &bytes, &|| format!("{name}, byte {at} = {value}"));
            }
            bytes[at] = good;
        }
        cases += subject.cases;
    }
    assert!(cases >= 51_200);
    println!("byte-overwrites={cases} undetected=0");
}

#[test]
fn damage_in_several_places_is_detected_or_cuts_only_what_nothing_vouches_for() {
    let wanted = random_cases(24_000);
    let mut random = Random(5);
    let mut cases = 0;
    for mut subject in subjects() {
        let name = subject.name;
        while subject.cases < wanted / 3 {
            let mut bytes = subject.good.clone();
            let flips = 2 + random.below(15);
            // Within one stretch of up to 512 bytes, or all over the segment.
            let stretch = if random.below(2) == 0 { 512 } else { SEGMENT_BYTES };
            let start = random.below(SEGMENT_BYTES);
            for _ in 0..flips {
                let at = (start + random.below(stretch)) % SEGMENT_BYTES;
                bytes[at] ^= 1 << random.below(8);
            }
            if bytes == subject.good {
                continue; // two flips of the same bit
            }
            let seed = random.0;
            subject.check_anywhere(&bytes, &|| format!("{name}, {flips} bits, state {seed}"));
        }
        cases += subject.cases;
    }
    println!("multi-bit-damages={cases} undetected=0");
}
