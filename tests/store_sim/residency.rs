//! Rows in memory over a snapshot, against a model that keeps everything: what is read, page by
//! page, how much memory is counted, and what a bounded cache keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sharestate::engine::residency::Resident;
use sharestate::model::{Options, RowId, State};
use sharestate::snapshot::{MemoryRows, Snapshot};
use sharestate::{Command, Marker, Outcome, SharePartitionKey};
use uuid::Uuid;

use super::support;

/// Approximate memory of a row that does not exist.
const ABSENT_BYTES: usize = 128;

struct Cache {
    snapshot: Arc<Snapshot>,
    resident: Resident,
    /// Everything, always.
    model: State,
    lsn: u64,
    model_lsn: u64,
}

fn key(group: &str, partition: i32) -> SharePartitionKey {
    SharePartitionKey::new(group, Uuid::from_u128(0x51), partition).expect("valid key")
}

fn initialize(key: SharePartitionKey, state_epoch: i32) -> Command {
    Command::Initialize { key, state_epoch, start_offset: 0 }
}

fn stage(key: SharePartitionKey, producer_id: i64, epoch: i16, offset: i64) -> Command {
    support::stage(key, producer_id, epoch, support::accept(offset, offset)).into()
}

fn marker(producer_id: i64, producer_epoch: i16) -> Command {
    let (coordinator_epoch, transaction_version) = (1, 2);
    let outcome = Outcome::Commit;
    Marker { producer_id, producer_epoch, coordinator_epoch, outcome, transaction_version }.into()
}

impl Cache {
    fn new() -> Self {
        let rows = Box::new(MemoryRows::default());
        let snapshot = Arc::new(Snapshot::create(rows, Uuid::from_u128(1)).expect("a snapshot"));
        let resident = Resident::new(Arc::clone(&snapshot));
        Self { snapshot, resident, model: State::default(), lsn: 0, model_lsn: 0 }
    }

    /// Answers whether it was accepted.
    fn execute(&mut self, command: &Command) -> bool {
        let options = Options { producer_id_expiration_ms: 0 };
        let expected = self.model.execute(&mut self.model_lsn, command, 1_000, &options);
        let decision = self.resident.decide(command, 1_000, &options).expect("readable");
        if let Some(transition) = decision.transition {
            self.resident.load_for(&transition).expect("readable");
            self.lsn += 1;
            self.resident.apply(self.lsn, &transition).expect("possible");
        }
        assert_eq!(self.lsn, self.model_lsn);
        assert_eq!(decision.answer.is_ok(), expected.is_ok());
        expected.is_ok()
    }

    fn checkpoint(&mut self) {
        let batch = self.resident.freeze(self.lsn);
        self.snapshot.write(&batch).expect("written");
        self.resident.thaw(true);
    }

    fn bytes_of(&self, id: &RowId) -> usize {
        let row = match id {
            RowId::Partition(key) => self.model.partitions.get(key).map(|row| row.approx_bytes()),
            RowId::Producer(id) => self.model.producers.get(id).map(|row| row.approx_bytes()),
        };
        ABSENT_BYTES + row.unwrap_or(0)
    }

    /// All share partitions of a group, or of all, in pages of this size.
    fn check_partitions(&self, group: Option<&str>, limit: usize) {
        let mut expected: Vec<_> = self.model.partitions.clone().into_iter().collect();
        expected.retain(|(key, _)| group.is_none_or(|group| key.group_id() == group));
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.resident.partitions(group, after.as_ref(), limit).expect("readable");
            assert!(page.0.len() <= limit && (page.1.is_none() || page.1 > after), "{page:?}");
            found.extend(page.0);
            after = page.1;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{group:?} by {limit}");
    }

    fn check_producers(&self, limit: usize) {
        let expected: BTreeMap<_, _> = self.model.producers.clone().into_iter().collect();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.resident.producers(after, limit).expect("readable");
            assert!(page.0.len() <= limit && (page.1.is_none() || page.1 > after), "{page:?}");
            found.extend(page.0);
            after = page.1;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "by {limit}");
    }
}

#[test]
fn pages_of_any_size_show_the_snapshot_with_all_changes_laid_over_it() {
    let mut random = 7_u64;
    let mut next = |bound: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let (mut accepted, mut pages) = (0, 0);
    for _ in 0..40 {
        let mut cache = Cache::new();
        for _ in 0..60 {
            let key = key(["a", "b", "c"][next(3) as usize], next(4) as i32);
            let (id, epoch) = (next(9) as i64, next(3) as i16);
            accepted += u32::from(match next(12) {
                0..=3 => cache.execute(&initialize(key, next(3) as i32)),
                4 => cache.execute(&Command::Delete { key }),
                5 | 6 => cache.execute(&stage(key, id, epoch, next(30) as i64)),
                7 => cache.execute(&marker(id, epoch)),
                8 => cache.execute(&Command::ExpireProducers { producer_ids: vec![id] }),
                9 => {
                    cache.checkpoint();
                    true
                }
                10 => {
                    // A checkpoint that fails.
                    drop(cache.resident.freeze(cache.lsn));
                    cache.resident.thaw(false);
                    true
                }
                _ => {
                    cache.resident.evict(next(4) as usize * 500);
                    true
                }
            });
        }
        for limit in 1..8 {
            cache.check_producers(limit);
            for group in [None, Some("a"), Some("b"), Some("c"), Some("d")] {
                cache.check_partitions(group, limit);
                pages += 1;
            }
        }
        for id in 0..9 {
            let found = cache.resident.producer(id).expect("readable");
            assert_eq!(found.as_ref(), cache.model.producers.get(&id));
        }
        assert_eq!(cache.resident.producers(None, 0).expect("readable"), (vec![], None));
    }
    println!("accepted={accepted} walks={pages}");
    assert!(accepted > 1_000);
}

#[test]
fn the_memory_of_changed_rows_is_what_the_rows_take() {
    let mut cache = Cache::new();
    let mut changed = BTreeSet::new();
    let partition = |n| RowId::Partition(key("g", n));
    let expect = |cache: &Cache, changed: &BTreeSet<RowId>, held: usize, what: &str| {
        let bytes: usize = changed.iter().map(|id| cache.bytes_of(id)).sum();
        assert_eq!(cache.resident.changed_bytes(), bytes + held, "{what}");
        assert_eq!(cache.resident.has_changes(), !changed.is_empty(), "{what}");
    };
    expect(&cache, &changed, 0, "nothing");
    for n in 0..3 {
        cache.execute(&initialize(key("g", n), 1));
        changed.insert(partition(n));
        expect(&cache, &changed, 0, "new rows");
    }
    cache.execute(&stage(key("g", 0), 7, 0, 1));
    changed.insert(RowId::Producer(7));
    expect(&cache, &changed, 0, "a row that grew, and a producer");
    cache.execute(&Command::Delete { key: key("g", 2) });
    expect(&cache, &changed, 0, "a deleted row");

    drop(cache.resident.freeze(cache.lsn));
    expect(&cache, &changed, 0, "a running checkpoint");
    let held = cache.bytes_of(&partition(1));
    for offset in [3, 5] {
        cache.execute(&stage(key("g", 1), 8, 0, offset));
        changed.insert(RowId::Producer(8));
        expect(&cache, &changed, held, "a row of the checkpoint that changed again");
    }
    cache.resident.thaw(false);
    expect(&cache, &changed, 0, "a failed checkpoint");

    let batch = cache.resident.freeze(cache.lsn);
    cache.execute(&stage(key("g", 0), 8, 0, 9));
    cache.snapshot.write(&batch).expect("written");
    cache.resident.thaw(true);
    changed = [partition(0), RowId::Producer(8)].into();
    expect(&cache, &changed, 0, "what changed since is changed");
    cache.checkpoint();
    changed.clear();
    expect(&cache, &changed, 0, "all of it is written");
}

#[test]
fn a_row_says_what_it_rests_on_until_it_is_in_the_snapshot() {
    let mut cache = Cache::new();
    let id = [RowId::Partition(key("g", 0))];
    assert_eq!(cache.resident.rests_on(&id), 0);
    cache.execute(&initialize(key("g", 0), 1));
    cache.execute(&initialize(key("g", 1), 1));
    assert_eq!(cache.resident.rests_on(&id), 1);
    let both = [RowId::Partition(key("g", 0)), RowId::Partition(key("g", 1))];
    assert_eq!(cache.resident.rests_on(&both), 2);
    let batch = cache.resident.freeze(2);
    cache.execute(&initialize(key("g", 1), 2));
    cache.snapshot.write(&batch).expect("written");
    cache.resident.thaw(true);
    assert_eq!((cache.resident.rests_on(&id), cache.resident.rests_on(&both)), (0, 3));
    let (rows, rests_on) = cache.resident.rows(&[key("g", 0), key("g", 9)]).expect("readable");
    assert_eq!((rows.len(), rests_on), (1, 0));
    assert_eq!(cache.resident.rows(&[key("g", 1)]).expect("readable").1, 3);
}

/// A cache with ten clean rows of one size, of which the last ones were used last.
fn ten_clean() -> (Cache, usize) {
    let mut cache = Cache::new();
    (0..10).for_each(|n| assert!(cache.execute(&initialize(key("g", n), 1))));
    cache.checkpoint();
    let size = cache.bytes_of(&RowId::Partition(key("g", 0)));
    (cache, size)
}

fn cached(cache: &Cache) -> Vec<i32> {
    let mut found: Vec<_> =
        cache.resident.state().partitions.keys().map(SharePartitionKey::partition).collect();
    found.sort_unstable();
    found
}

#[test]
fn the_cache_keeps_as_many_clean_rows_as_fit_and_those_that_were_used() {
    let (mut cache, size) = ten_clean();
    cache.resident.evict(10 * size);
    assert_eq!(cached(&cache).len(), 10, "they fit");
    cache.resident.evict(10 * size - 1);
    assert_eq!(cached(&cache).len(), 9);
    // All had a second chance by now. What is used from here on outlives the others.
    let used: Vec<i32> = cached(&cache).into_iter().step_by(2).collect();
    for n in &used {
        cache.resident.rows(&[key("g", *n)]).expect("readable");
    }
    cache.resident.evict(used.len() * size);
    assert_eq!(cached(&cache), used);
    cache.resident.evict(0);
    assert!(cached(&cache).is_empty());
    // Gone from memory, not from the store.
    (0..10).for_each(|n| {
        assert_eq!(cache.resident.rows(&[key("g", n)]).expect("readable").0.len(), 1);
    });
    assert_eq!(cached(&cache).len(), 10);
}

#[test]
fn the_cache_never_gives_up_a_changed_row_nor_counts_it() {
    let (mut cache, size) = ten_clean();
    cache.execute(&initialize(key("g", 3), 2));
    cache.resident.evict(9 * size);
    assert_eq!(cached(&cache).len(), 10, "nine clean rows fit");
    cache.resident.evict(0);
    assert_eq!(cached(&cache), [3]);
    let batch = cache.resident.freeze(cache.lsn);
    cache.resident.evict(0);
    assert_eq!(cached(&cache), [3], "part of a checkpoint");
    cache.snapshot.write(&batch).expect("written");
    cache.resident.thaw(true);
    cache.resident.evict(size);
    assert_eq!(cached(&cache), [3], "clean, and it fits");
    cache.resident.evict(0);
    assert!(cached(&cache).is_empty(), "written, so it may go");

    // An absent row is counted as well, and a row that was loaded again and again only once.
    let (mut cache, size) = ten_clean();
    cache.resident.evict(0);
    for _ in 0..3 {
        assert_eq!(cache.resident.rows(&[key("g", 77)]).expect("readable").0.len(), 0);
        assert_eq!(cache.resident.rows(&[key("g", 1)]).expect("readable").0.len(), 1);
    }
    cache.resident.evict(ABSENT_BYTES + size);
    assert_eq!(cached(&cache), [1]);
}
