//! State batches and Kafka's rule for merging them (semantics section 3).
//!
//! Owns every calculation on sorted runs of offsets. Knows nothing of epochs, producers or
//! commands.
//!
//! Offsets are `0..=i64::MAX - 1`, so that "one past the last" always exists; arithmetic saturates
//! all the same, and garbage in gives garbage out, never a panic.

use std::collections::BinaryHeap;

/// "Start offset not known yet": never clips.
pub(super) const NO_START: i64 = -1;

/// How a record stands, as Kafka numbers it.
///
/// A plain number, because requests carry numbers: [`decide`](super::decide()) refuses the ones
/// that cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryState(pub i8);

impl DeliveryState {
    /// Deliverable.
    pub const AVAILABLE: Self = Self(0);
    /// Locked by a consumer. Lives in a broker's memory only and is never stored.
    pub const ACQUIRED: Self = Self(1);
    /// Processed: terminal.
    pub const ACKNOWLEDGED: Self = Self(2);
    /// On its way to a dead-letter queue (KIP-1191): leads to [`ARCHIVED`](Self::ARCHIVED) only.
    pub const ARCHIVING: Self = Self(3);
    /// Given up: terminal.
    pub const ARCHIVED: Self = Self(4);
    /// How KIP-1289's draft shows a staged ack on the wire. Never stored: see `docs/decisions.md`.
    pub const TX_PENDING: Self = Self(5);

    /// Whether a batch in this state may be stored: 0, 2, 3 or 4.
    #[must_use]
    pub fn is_storable(self) -> bool {
        matches!(self, Self::AVAILABLE | Self::ACKNOWLEDGED | Self::ARCHIVING | Self::ARCHIVED)
    }

    /// Whether a record in this state counts as delivery-complete (KIP-1226): 2 or 4.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::ACKNOWLEDGED | Self::ARCHIVED)
    }
}

/// A run of offsets in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateBatch {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// State of every offset in the run.
    pub delivery_state: DeliveryState,
    /// How often the records were acquired.
    pub delivery_count: i16,
}

impl StateBatch {
    /// Whether a store may hold this batch (semantics section 2, "a malformed batch").
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        is_offset_range(self.first_offset, self.last_offset)
            && self.delivery_state.is_storable()
            && self.delivery_count >= 0
    }

    /// Whether `next` begins right behind this batch and is of the same state and count.
    fn continues_with(&self, next: &Self) -> bool {
        self.last_offset.checked_add(1) == Some(next.first_offset)
            && self.delivery_state == next.delivery_state
            && self.delivery_count == next.delivery_count
    }
}

/// Anything that covers `first..=last`.
pub(super) trait Span {
    fn first(&self) -> i64;
    fn last(&self) -> i64;
}

impl Span for StateBatch {
    fn first(&self) -> i64 {
        self.first_offset
    }
    fn last(&self) -> i64 {
        self.last_offset
    }
}

impl Span for (i64, i64) {
    fn first(&self) -> i64 {
        self.0
    }
    fn last(&self) -> i64 {
        self.1
    }
}

/// Whether these are both ends of a legal, non-empty range of offsets.
pub(super) fn is_offset_range(first: i64, last: i64) -> bool {
    0 <= first && first <= last && last < i64::MAX
}

/// How many offsets `first..=last` holds.
pub(super) fn length(first: i64, last: i64) -> i64 {
    last.saturating_sub(first).saturating_add(1)
}

/// The spans that share an offset with `first..=last`. `spans` is sorted and disjoint.
pub(super) fn overlapping<S: Span>(spans: &[S], first: i64, last: i64) -> &[S] {
    let from = spans.partition_point(|span| span.last() < first);
    let to = spans.partition_point(|span| span.first() <= last);
    spans.get(from..to).unwrap_or_default()
}

/// The parts of `first..=last` that no span covers, ascending. `taken` is sorted and disjoint.
pub(super) fn uncovered<S: Span>(first: i64, last: i64, taken: &[S]) -> Vec<(i64, i64)> {
    let mut free = Vec::new();
    let mut at = first;
    for span in overlapping(taken, first, last) {
        if at < span.first() {
            free.push((at, span.first().saturating_sub(1)));
        }
        at = span.last().saturating_add(1);
    }
    if at <= last {
        free.push((at, last));
    }
    free
}

/// Joins spans that touch; the input is ascending and disjoint.
pub(super) fn join(spans: impl IntoIterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (first, last) in spans {
        match joined.last_mut() {
            Some(run) if run.1.checked_add(1) == Some(first) => run.1 = last,
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// Appends a batch, as part of the last one where both are one run.
pub(super) fn push(batches: &mut Vec<StateBatch>, next: StateBatch) {
    match batches.last_mut() {
        Some(run) if run.continues_with(&next) => run.last_offset = next.last_offset,
        _ => batches.push(next),
    }
}

/// The part of a batch at or above the start offset.
pub(super) fn clip(batch: StateBatch, start_offset: i64) -> Option<StateBatch> {
    let first_offset = match start_offset {
        NO_START => batch.first_offset,
        start => batch.first_offset.max(start),
    };
    (first_offset <= batch.last_offset).then_some(StateBatch { first_offset, ..batch })
}

/// Drops what lies below the start offset from sorted batches.
pub(super) fn clip_all(batches: &mut Vec<StateBatch>, start_offset: i64) {
    let gone = batches.partition_point(|batch| clip(*batch, start_offset).is_none());
    drop(batches.drain(..gone));
    if let Some(head) = batches.first_mut()
        && let Some(clipped) = clip(*head, start_offset)
    {
        *head = clipped;
    }
}

/// Whether these are sorted, disjoint, maximal runs at or above the start offset that a store may
/// hold.
pub(super) fn is_canonical(batches: &[StateBatch], start_offset: i64) -> bool {
    batches.iter().all(|batch| batch.is_well_formed() && clip(*batch, start_offset) == Some(*batch))
        && batches.is_sorted_by(|a, b| a.last_offset < b.first_offset && !a.continues_with(b))
}

/// Merges batches as Kafka 4.4 does (semantics section 3): per offset the highest delivery count
/// wins, on equal count the highest delivery state, wherever it comes from; what lies below
/// `start_offset` is dropped (-1 = nothing is).
///
/// Both inputs may be in any order and may overlap; the output is sorted, disjoint and made of
/// maximal runs. One sweep over the batches by first offset with a heap of those that cover the
/// position: `O(n log n)`, and close to linear when the inputs are sorted runs. The pairwise method
/// that this replaces upstream was quadratic (KAFKA-20691).
#[must_use]
pub fn combine(stored: &[StateBatch], new: &[StateBatch], start_offset: i64) -> Vec<StateBatch> {
    let mut batches: Vec<StateBatch> =
        stored.iter().chain(new).filter_map(|batch| clip(*batch, start_offset)).collect();
    // The stable sort takes two sorted halves in linear time.
    batches.sort_by_key(|batch| batch.first_offset);

    let mut output = Vec::with_capacity(batches.len());
    // What covers the position, the winner on top: (delivery count, delivery state, last offset).
    let mut active: BinaryHeap<(i16, DeliveryState, i64)> = BinaryHeap::new();
    let mut coming = batches.into_iter().peekable();
    let mut position = i64::MIN;
    loop {
        while active.peek().is_some_and(|(_, _, last)| *last < position) {
            active.pop();
        }
        if active.is_empty() {
            let Some(next) = coming.peek() else { return output };
            position = next.first_offset;
        }
        while let Some(next) = coming.next_if(|next| next.first_offset <= position) {
            active.push((next.delivery_count, next.delivery_state, next.last_offset));
        }
        let Some(&(delivery_count, delivery_state, end)) = active.peek() else { return output };
        // It wins until it ends or another begins.
        let begin = coming.peek().map_or(i64::MAX, |next| next.first_offset.saturating_sub(1));
        let run = StateBatch {
            first_offset: position,
            last_offset: end.min(begin),
            delivery_state,
            delivery_count,
        };
        push(&mut output, run);
        let Some(next) = run.last_offset.checked_add(1) else { return output };
        position = next;
    }
}

/// Lays `painted` over `batches`: the last writer wins, whatever the counts. Both are sorted and
/// disjoint.
pub(super) fn paint(batches: &[StateBatch], painted: &[StateBatch]) -> Vec<StateBatch> {
    let mut output = Vec::with_capacity(batches.len().saturating_add(painted.len()));
    let mut coming = painted.iter().peekable();
    let mut free = i64::MIN;
    for batch in batches {
        let mut at = batch.first_offset.max(free);
        while let Some(over) = coming.next_if(|over| over.first_offset <= batch.last_offset) {
            if at < over.first_offset {
                let last_offset = over.first_offset.saturating_sub(1);
                push(&mut output, StateBatch { first_offset: at, last_offset, ..*batch });
            }
            push(&mut output, *over);
            free = over.last_offset.saturating_add(1);
            at = at.max(free);
        }
        if at <= batch.last_offset {
            push(&mut output, StateBatch { first_offset: at, ..*batch });
        }
    }
    coming.for_each(|over| push(&mut output, *over));
    output
}

/// Merges `changes` into `batches` in place with [`combine`] or [`paint`], touching only the
/// batches next to them. Both are sorted and disjoint.
pub(super) fn merge_into(
    batches: &mut Vec<StateBatch>,
    changes: &[StateBatch],
    merge: impl FnOnce(&[StateBatch], &[StateBatch]) -> Vec<StateBatch>,
) {
    let (Some(head), Some(tail)) = (changes.first(), changes.last()) else { return };
    // One offset more on either side, so that a changed run joins an equal neighbour.
    let first = head.first_offset.saturating_sub(1);
    let last = tail.last_offset.saturating_add(1);
    let from = batches.partition_point(|batch| batch.last_offset < first);
    let to = batches.partition_point(|batch| batch.first_offset <= last);
    if let Some(part) = batches.get(from..to) {
        let merged = merge(part, changes);
        drop(batches.splice(from..to, merged));
    }
}

/// `batches` without the offsets that `cuts` covers. Both are sorted and disjoint.
pub(super) fn cut(batches: &[StateBatch], cuts: &[(i64, i64)]) -> Vec<StateBatch> {
    let mut output = Vec::with_capacity(batches.len());
    for batch in batches {
        let kept = uncovered(batch.first_offset, batch.last_offset, cuts);
        output.extend(kept.into_iter().map(|(first_offset, last_offset)| StateBatch {
            first_offset,
            last_offset,
            ..*batch
        }));
    }
    output
}

/// How many offsets of `painted` become terminal, i.e. were not terminal in `batches`. Both are
/// sorted and disjoint.
pub(super) fn newly_terminal(batches: &[StateBatch], painted: &[StateBatch]) -> i64 {
    let mut count = 0_i64;
    for over in painted.iter().filter(|over| over.delivery_state.is_terminal()) {
        count = count.saturating_add(length(over.first_offset, over.last_offset));
        for batch in overlapping(batches, over.first_offset, over.last_offset) {
            if batch.delivery_state.is_terminal() {
                let first = batch.first_offset.max(over.first_offset);
                let last = batch.last_offset.min(over.last_offset);
                count = count.saturating_sub(length(first, last));
            }
        }
    }
    count
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
        let delivery_state = DeliveryState(state);
        StateBatch { first_offset, last_offset, delivery_state, delivery_count }
    }

    fn offsets(batches: &[StateBatch]) -> BTreeMap<i64, (DeliveryState, i16)> {
        let offsets = |b: &StateBatch| {
            let what = (b.delivery_state, b.delivery_count);
            (b.first_offset..=b.last_offset).map(move |offset| (offset, what))
        };
        batches.iter().flat_map(offsets).collect()
    }

    fn any_canonical() -> impl Strategy<Value = Vec<StateBatch>> {
        let states = prop::sample::select(vec![0_i8, 2, 3, 4]);
        let batch = (0_i64..50, 0_i64..8, states, 0_i16..3)
            .prop_map(|(first, more, state, count)| batch(first, first + more, state, count));
        prop::collection::vec(batch, 0..10).prop_map(|batches| combine(&[], &batches, NO_START))
    }

    proptest! {
        #[test]
        fn the_last_painter_wins_whatever_the_counts(
            batches in any_canonical(),
            painted in any_canonical(),
        ) {
            let mut expected = offsets(&batches);
            expected.extend(offsets(&painted));
            let output = paint(&batches, &painted);
            prop_assert_eq!(offsets(&output), expected);
            prop_assert!(is_canonical(&output, NO_START));
        }

        #[test]
        fn merging_next_to_the_changes_only_is_merging_everything(
            batches in any_canonical(),
            changes in any_canonical(),
        ) {
            let mut painted = batches.clone();
            merge_into(&mut painted, &changes, paint);
            prop_assert_eq!(painted, paint(&batches, &changes));
            let mut combined = batches.clone();
            merge_into(&mut combined, &changes, |part, changes| combine(part, changes, NO_START));
            prop_assert_eq!(combined, combine(&batches, &changes, NO_START));
        }

        #[test]
        fn cutting_takes_exactly_the_cut_offsets(
            batches in any_canonical(),
            cuts in any_canonical(),
        ) {
            let cuts = join(cuts.iter().map(|cut| (cut.first_offset, cut.last_offset)));
            let mut expected = offsets(&batches);
            expected.retain(|offset, _| overlapping(&cuts, *offset, *offset).is_empty());
            prop_assert_eq!(offsets(&cut(&batches, &cuts)), expected);
        }

        #[test]
        fn clipping_in_place_is_clipping_each(batches in any_canonical(), start in -1_i64..60) {
            let mut clipped = batches.clone();
            clip_all(&mut clipped, start);
            prop_assert_eq!(clipped, combine(&batches, &[], start));
        }

        #[test]
        fn an_offset_becomes_terminal_once(
            batches in any_canonical(),
            painted in any_canonical(),
        ) {
            let before = offsets(&batches);
            let becomes = |(offset, what): &(&i64, &(DeliveryState, i16))| {
                let was = before.get(*offset).is_some_and(|before| before.0.is_terminal());
                what.0.is_terminal() && !was
            };
            let expected = offsets(&painted).iter().filter(becomes).count();
            prop_assert_eq!(newly_terminal(&batches, &painted), expected as i64);
        }
    }

    #[test]
    fn canonical_means_sorted_disjoint_maximal_legal_and_clipped() {
        let legal = [batch(5, 6, 0, 1), batch(7, 9, 0, 2), batch(11, 12, 0, 2)];
        assert!(is_canonical(&legal, 5));
        assert!(!is_canonical(&legal, 6), "below the start");
        assert!(!is_canonical(&[legal[1], legal[0]], 5), "unsorted");
        assert!(!is_canonical(&[batch(5, 7, 0, 1), legal[1]], 5), "overlapping");
        assert!(!is_canonical(&[batch(5, 6, 0, 2), legal[1]], 5), "not maximal");
        for illegal in [
            batch(6, 5, 0, 1),
            batch(-1, 5, 0, 1),
            batch(5, i64::MAX, 0, 1),
            batch(5, 6, 1, 1),
            batch(5, 6, 5, 1),
            batch(5, 6, -1, 1),
            batch(5, 6, 0, -1),
        ] {
            assert!(!is_canonical(&[illegal], NO_START), "{illegal:?}");
        }
    }

    #[test]
    fn the_ends_of_the_offset_range_are_painted_without_overflow() {
        let top = i64::MAX - 1;
        let painted = paint(&[batch(0, top, 0, 1)], &[batch(top, top, 2, 0)]);
        assert_eq!(painted, [batch(0, top - 1, 0, 1), batch(top, top, 2, 0)]);
        let mut batches = vec![batch(0, top, 0, 1)];
        merge_into(&mut batches, &[batch(0, 0, 2, 0), batch(top, top, 2, 0)], paint);
        assert_eq!(batches.len(), 3);
        assert_eq!(newly_terminal(&[], &[batch(0, top, 2, 0)]), i64::MAX);
    }
}
