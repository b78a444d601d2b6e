//! A share partition as the record keeps it: a map from offset to state, and the rules of
//! the protocol written down a second time, as naively as possible.
//!
//! Must not use anything of the library's model: it is there to disagree with it.

use std::collections::BTreeMap;

use super::wire::{Answer, Op, Told};

/// Kafka's error codes.
const INVALID_REQUEST: i16 = 42;
const FENCED_LEADER_EPOCH: i16 = 74;
const INVALID_RECORD_STATE: i16 = 121;
const FENCED_STATE_EPOCH: i16 = 124;

/// An acknowledgement that waits for the marker of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    pub producer: i64,
    pub epoch: i16,
    pub ack: i8,
    /// State on commit and on abort.
    pub commit: i8,
    pub abort: i8,
    pub count: i16,
}

/// A share partition that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub leader_fence: i32,
    pub start: i64,
    pub init_start: i64,
    pub complete: i32,
    /// Offset -> delivery state and count.
    pub offsets: BTreeMap<i64, (i8, i16)>,
    /// Offset -> what is prepared for it.
    pub prepared: BTreeMap<i64, Prepared>,
}

/// What an operation comes to: the answer, and the share partition after it.
pub fn apply(row: Option<&Row>, op: &Op) -> (Answer, Option<Row>) {
    let unchanged = |answer| (answer, row.cloned());
    match op {
        Op::Initialize { state_epoch, start } => initialize(row, *state_epoch, *start),
        Op::Delete => (Answer::Done, None),
        Op::Summary => unchanged(Answer::Told(told(row))),
        Op::Read { leader_epoch } => match row {
            None => unchanged(Answer::Refused(INVALID_REQUEST)),
            Some(row) if *leader_epoch < row.leader_fence => {
                unchanged(Answer::Refused(FENCED_LEADER_EPOCH))
            }
            Some(row) => {
                let mut row = row.clone();
                if *leader_epoch > row.leader_fence {
                    row.leader_epoch = *leader_epoch;
                    row.leader_fence = *leader_epoch;
                }
                (Answer::Told(told(Some(&row))), Some(row))
            }
        },
        Op::Write { state_epoch, leader_epoch, start, complete, runs } => match row {
            None => unchanged(Answer::Refused(INVALID_REQUEST)),
            Some(row) if *leader_epoch < row.leader_fence => {
                unchanged(Answer::Refused(FENCED_LEADER_EPOCH))
            }
            Some(row) if *state_epoch < row.state_epoch => {
                unchanged(Answer::Refused(FENCED_STATE_EPOCH))
            }
            Some(row) => match write(row.clone(), *start, *complete, runs) {
                Some(row) => (Answer::Done, Some(row)),
                None => unchanged(Answer::Refused(INVALID_RECORD_STATE)),
            },
        },
    }
}

fn told(row: Option<&Row>) -> Told {
    match row {
        None => Told { state_epoch: 0, leader_epoch: 0, start: -1, complete: -1 },
        Some(row) => Told {
            state_epoch: row.state_epoch,
            leader_epoch: row.leader_epoch,
            start: row.start,
            complete: row.complete,
        },
    }
}

fn initialize(row: Option<&Row>, state_epoch: i32, start: i64) -> (Answer, Option<Row>) {
    if let Some(row) = row {
        if state_epoch < row.state_epoch {
            return (Answer::Refused(FENCED_STATE_EPOCH), Some(row.clone()));
        }
        if state_epoch == row.state_epoch && (start == row.start || start == row.init_start) {
            return (Answer::Done, Some(row.clone()));
        }
    }
    let fresh = Row {
        state_epoch,
        leader_epoch: 0,
        leader_fence: row.map_or(0, |row| row.leader_fence),
        start,
        init_start: start,
        complete: if start == -1 { -1 } else { 0 },
        offsets: BTreeMap::new(),
        prepared: BTreeMap::new(),
    };
    (Answer::Done, Some(fresh))
}

/// Nothing when the write speaks of a record that waits for a marker.
fn write(mut row: Row, start: i64, complete: i32, runs: &[(i64, i64, i8, i16)]) -> Option<Row> {
    let old_start = row.start;
    row.start = row.start.max(start);
    let mut is_stale = false;
    for (first, last, state, count) in runs {
        for offset in *first..=*last {
            if offset < row.start {
                continue;
            }
            match row.prepared.get(&offset) {
                Some(prepared) if *count >= prepared.count => return None,
                Some(_) => {
                    is_stale = true;
                    continue;
                }
                None => {}
            }
            let old = row.offsets.entry(offset).or_insert((*state, *count));
            // The higher delivery count wins, then the higher state.
            if (*count, *state) > (old.1, old.0) {
                *old = (*state, *count);
            }
        }
    }
    row.complete = match start.cmp(&old_start) {
        _ if is_stale => row.complete,
        std::cmp::Ordering::Less => row.complete,
        std::cmp::Ordering::Equal => row.complete.max(complete),
        std::cmp::Ordering::Greater => complete,
    };
    let start = row.start;
    row.offsets.retain(|offset, _| *offset >= start);
    row.prepared.retain(|offset, _| *offset >= start);
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_op(start: i64, complete: i32, runs: Vec<(i64, i64, i8, i16)>) -> Op {
        Op::Write { state_epoch: 1, leader_epoch: 5, start, complete, runs }
    }

    #[test]
    fn a_life_of_a_share_partition_on_paper() {
        let (answer, row) = apply(None, &write_op(0, 0, vec![]));
        assert_eq!((answer, row), (Answer::Refused(42), None));
        let (_, row) = apply(None, &Op::Initialize { state_epoch: 1, start: 3 });
        let (_, row) = apply(row.as_ref(), &Op::Read { leader_epoch: 5 });
        let (_, row) = apply(row.as_ref(), &write_op(3, 2, vec![(3, 5, 2, 1), (6, 6, 0, 1)]));
        let (_, row) = apply(row.as_ref(), &write_op(5, 1, vec![(5, 6, 0, 1), (6, 6, 4, 2)]));
        let row = row.unwrap();
        assert_eq!((row.start, row.complete, row.leader_fence), (5, 1, 5));
        assert_eq!(row.offsets, BTreeMap::from([(5, (2, 1)), (6, (4, 2))]));
        let (answer, _) = apply(Some(&row), &Op::Read { leader_epoch: 4 });
        assert_eq!(answer, Answer::Refused(74));
        let (answer, again) = apply(Some(&row), &Op::Initialize { state_epoch: 1, start: 3 });
        assert_eq!((answer, again.as_ref()), (Answer::Done, Some(&row)));
        let (_, reset) = apply(Some(&row), &Op::Initialize { state_epoch: 2, start: -1 });
        let reset = reset.unwrap();
        assert_eq!((reset.leader_fence, reset.leader_epoch, reset.complete), (5, 0, -1));
        assert!(reset.offsets.is_empty());
    }

    #[test]
    fn a_write_goes_around_what_is_prepared() {
        let (_, row) = apply(None, &Op::Initialize { state_epoch: 1, start: 0 });
        let mut row = row.unwrap();
        let prepared = Prepared { producer: 7, epoch: 0, ack: 1, commit: 2, abort: 0, count: 2 };
        row.prepared = (3..6).map(|offset| (offset, prepared)).collect();
        let (answer, same) = apply(Some(&row), &write_op(0, 4, vec![(0, 3, 2, 2)]));
        assert_eq!((answer, same.as_ref()), (Answer::Refused(121), Some(&row)));
        let (answer, around) = apply(Some(&row), &write_op(0, 4, vec![(2, 4, 0, 1)]));
        let around = around.unwrap();
        assert_eq!((answer, around.complete), (Answer::Done, 0));
        assert_eq!(around.offsets, BTreeMap::from([(2, (0, 1))]));
        let (_, past) = apply(Some(&row), &write_op(5, 0, vec![(3, 4, 2, 9)]));
        let past = past.unwrap();
        assert_eq!(past.prepared.keys().copied().collect::<Vec<_>>(), [5]);
    }
}
