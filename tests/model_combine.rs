//! `combine`: Kafka's test cases, results of Kafka 4.4's own class, random inputs against a
//! painter that works offset by offset, the ends of the offset range, and a guard on its cost.

#[path = "support/oracle.rs"]
mod oracle;

use proptest::prelude::*;
use serde_json::Value;
use sharestate::limits::BATCHES_PER_CALL_MAX;
use sharestate::model::{DeliveryState, StateBatch, combine};

fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
    let delivery_state = DeliveryState(state);
    StateBatch { first_offset, last_offset, delivery_state, delivery_count }
}

fn data(name: &str) -> Value {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON")
}

fn batches(value: &Value) -> Vec<StateBatch> {
    let int = |value: &Value| value.as_i64().expect("number");
    let batch = |b: &Value| {
        let (state, count) = (int(&b["state"]), int(&b["count"]));
        batch(int(&b["first"]), int(&b["last"]), state as i8, count as i16)
    };
    value.as_array().expect("batches").iter().map(batch).collect()
}

/// Runs vectors and returns how many there were.
fn run(vectors: &Value) -> usize {
    let vectors = vectors.as_array().expect("vectors");
    for vector in vectors {
        let start = vector["start_offset"].as_i64().expect("start offset");
        let (before, new) = (batches(&vector["before"]), batches(&vector["new"]));
        let expected = batches(&vector["expected"]);
        assert_eq!(combine(&before, &new, start), expected, "{}", vector["name"]);
        assert_eq!(combine(&new, &before, start), expected, "swapped: {}", vector["name"]);
    }
    vectors.len()
}

#[test]
fn kafkas_cases_and_random_results_of_its_own_class_agree() {
    let derived = data("combiner-derived.json");
    let counts = [run(&data("combiner.json")), run(&derived["random"]), run(&derived["shape"])];
    assert_eq!(counts, [30, 200, 3]);
    let stress = derived["stress"].as_array().expect("stress").len();
    assert_eq!(stress, 4, "each has a test of its own below");
    println!("combine-vectors={}", counts.iter().sum::<usize>() + stress);
}

/// Deterministic numbers for the stress cases, which prescribe none.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn ten_thousand_adjacent_equal_batches_become_one() {
    let input: Vec<_> = (0..10_000).map(|i| batch(10 * i, 10 * i + 9, 0, 1)).collect();
    assert_eq!(combine(&[], &input, -1), [batch(0, 99_999, 0, 1)]);
}

#[test]
fn five_thousand_shuffled_equal_batches_become_one() {
    let mut input: Vec<_> = (0..5_000).map(|i| batch(10 * i, 10 * i + 9, 0, 1)).collect();
    let mut dice = Dice(1);
    for i in (1..input.len()).rev() {
        input.swap(i, dice.roll(i as u64 + 1) as usize);
    }
    assert_eq!(combine(&input, &[], -1), [batch(0, 49_999, 0, 1)]);
}

#[test]
fn a_thousand_alternating_states_stay_apart() {
    let state = |i| if i % 2 == 0 { 0 } else { 2 };
    let input: Vec<_> = (0..1_000).map(|i| batch(10 * i, 10 * i + 9, state(i), 1)).collect();
    assert_eq!(combine(&[], &input, -1), input);
}

#[test]
fn two_thousand_random_batches_come_out_ascending_and_disjoint() {
    let mut dice = Dice(7);
    let input: Vec<_> = (0..2_000)
        .map(|_| {
            let first = dice.roll(100_000) as i64;
            let last = first + dice.roll(50) as i64;
            batch(first, last, dice.roll(4) as i8, 1 + dice.roll(3) as i16)
        })
        .collect();
    let output = combine(&input[..1_000], &input[1_000..], -1);
    assert!(output.iter().all(|b| b.first_offset <= b.last_offset));
    assert!(output.is_sorted_by(|a, b| a.last_offset < b.first_offset));
    assert_eq!(oracle::merged(&output, -1), oracle::merged(&input, -1));
}

/// The largest call onto an equally large row, in the shapes that hurt a pairwise merge: nested,
/// staggered, and alternating batches. A quadratic merge would take tens of billions of steps; a
/// test that suddenly takes minutes has found one.
#[test]
fn the_largest_inputs_are_merged_in_a_moment() {
    let n = BATCHES_PER_CALL_MAX as i64;
    let nested = |i: i64| batch(i, 4 * n - i, 2, i as i16 & 0xff);
    let staggered = |i: i64| batch(3 * i, 3 * i + 4 * n, 0, (i % 100) as i16);
    let alternating = |i: i64| batch(2 * i, 2 * i, (i % 2) as i8 * 2, 1);
    let shapes: [(&str, &dyn Fn(i64) -> StateBatch); 3] =
        [("nested", &nested), ("staggered", &staggered), ("alternating", &alternating)];
    for (name, shape) in shapes {
        let stored: Vec<_> = (0..n).map(shape).collect();
        let new: Vec<_> =
            (0..n).rev().map(|i| StateBatch { delivery_count: 7, ..shape(i) }).collect();
        let merged = combine(&stored, &new, n / 2);
        // Every output batch begins or ends where an input batch does.
        assert!(!merged.is_empty() && merged.len() <= 4 * n as usize, "{name}");
        assert!(merged.is_sorted_by(|a, b| a.last_offset < b.first_offset), "{name}");
    }
}

#[test]
fn a_batch_below_the_start_is_dropped_and_a_straddling_one_is_clipped() {
    let stored = [batch(0, 4, 2, 1), batch(5, 9, 0, 1)];
    assert_eq!(combine(&stored, &[], 5), [batch(5, 9, 0, 1)]);
    assert_eq!(combine(&stored, &[], 9), [batch(9, 9, 0, 1)]);
    assert_eq!(combine(&stored, &[], 10), []);
    assert_eq!(combine(&[], &stored, 7), [batch(7, 9, 0, 1)]);
}

#[test]
fn an_unknown_start_never_clips_and_a_start_of_zero_is_a_start() {
    let stored = [batch(0, 4, 2, 1)];
    assert_eq!(combine(&stored, &[], -1), stored);
    assert_eq!(combine(&stored, &[], 0), stored);
    assert_eq!(combine(&stored, &[], 1), [batch(1, 4, 2, 1)]);
}

#[test]
fn the_higher_delivery_count_wins_even_over_a_terminal_state() {
    let (stored, new) = ([batch(0, 9, 4, 1)], [batch(3, 5, 0, 2)]);
    let expected = [batch(0, 2, 4, 1), batch(3, 5, 0, 2), batch(6, 9, 4, 1)];
    assert_eq!(combine(&stored, &new, -1), expected);
    assert_eq!(combine(&new, &stored, -1), expected);
}

#[test]
fn on_equal_count_the_higher_state_number_wins() {
    let states = [0, 1, 2, 3, 4, 5];
    for low in states {
        for high in states.into_iter().filter(|high| *high > low) {
            let (a, b) = ([batch(0, 9, low, 1)], [batch(0, 9, high, 1)]);
            assert_eq!(combine(&a, &b, -1), b);
            assert_eq!(combine(&b, &a, -1), b);
        }
    }
}

#[test]
fn gaps_stay_gaps_and_equal_neighbours_join() {
    let stored = [batch(0, 4, 0, 1), batch(6, 9, 0, 1)];
    assert_eq!(combine(&stored, &[], -1), stored);
    assert_eq!(combine(&stored, &[batch(5, 5, 0, 1)], -1), [batch(0, 9, 0, 1)]);
    assert_eq!(combine(&stored, &[batch(5, 5, 0, 2)], -1).len(), 3);
    assert_eq!(combine(&stored, &[batch(5, 5, 2, 1)], -1).len(), 3);
}

#[test]
fn the_ends_of_the_offset_range_do_not_overflow() {
    let top = i64::MAX - 1;
    let high = [batch(top - 5, top, 0, 1)];
    assert_eq!(
        combine(&high, &[batch(top, top, 2, 1)], top - 1),
        [batch(top - 1, top - 1, 0, 1), batch(top, top, 2, 1),]
    );
    assert_eq!(combine(&high, &[], i64::MAX), []);
    // Malformed, refused before it gets here; must not panic or loop all the same.
    let malformed = [batch(5, i64::MAX, 0, 1), batch(i64::MIN, 7, 2, 1), batch(9, 3, 0, 1)];
    assert_eq!(combine(&malformed, &malformed, -1).len(), 2);
    assert_eq!(combine(&malformed, &[], i64::MAX), [batch(i64::MAX, i64::MAX, 0, 1)]);
}

fn any_batch() -> impl Strategy<Value = StateBatch> {
    (0_i64..60, 0_i64..15, 0_i8..6, 0_i16..4)
        .prop_map(|(first, more, state, count)| batch(first, first + more, state, count))
}

fn any_batches() -> impl Strategy<Value = Vec<StateBatch>> {
    prop::collection::vec(any_batch(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4_000,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_offset_is_what_a_painter_says_and_runs_are_maximal(
        stored in any_batches(),
        new in any_batches(),
        start in -1_i64..70,
    ) {
        let output = combine(&stored, &new, start);
        let all: Vec<_> = stored.iter().chain(&new).copied().collect();
        prop_assert_eq!(oracle::merged(&output, -1), oracle::merged(&all, start));
        let is_canonical = output.is_sorted_by(|a, b| {
            let touch = a.last_offset + 1 == b.first_offset;
            let same = a.delivery_state == b.delivery_state && a.delivery_count == b.delivery_count;
            a.last_offset < b.first_offset && !(touch && same)
        });
        prop_assert!(is_canonical);
    }

    /// Resending, reordering and cutting a call in two change nothing.
    #[test]
    fn merging_is_idempotent_commutative_and_associative(
        a in any_batches(),
        b in any_batches(),
        c in any_batches(),
        start in -1_i64..70,
    ) {
        let ab = combine(&a, &b, start);
        prop_assert_eq!(combine(&ab, &b, start), ab.clone());
        prop_assert_eq!(combine(&b, &a, start), ab.clone());
        let right = combine(&a, &combine(&b, &c, start), start);
        prop_assert_eq!(combine(&ab, &c, start), right);
    }
}
