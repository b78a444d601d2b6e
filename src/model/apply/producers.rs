//! Expiry of producers.

use super::super::{RowId, State};
use super::{ApplyError, Effects, Entry, Impossible};
use crate::seeded;

pub(super) fn expire(
    state: &mut State,
    entry: Entry<'_>,
    producer_ids: &[i64],
) -> Result<Effects, ApplyError> {
    let is_ascending = producer_ids.is_sorted_by(|a, b| a < b);
    // An entry that names nobody has no row to blame; any id will do.
    let any = producer_ids.first().copied().unwrap_or(-1);
    entry.require_producer(any, is_ascending, Impossible::Malformed)?;
    entry.require_producer(any, !producer_ids.is_empty(), Impossible::NoChange)?;
    for id in producer_ids {
        let is_idle = entry.get_producer(state, *id)?.open.is_empty();
        let is_idle = is_idle || seeded::bug("KAFKA-19163");
        entry.require_producer(*id, is_idle, Impossible::Pending)?;
    }
    for id in producer_ids {
        state.producers.remove(id);
    }
    let touched = producer_ids.iter().copied().map(RowId::Producer).collect();
    Ok(Effects { touched, ..Effects::default() })
}
