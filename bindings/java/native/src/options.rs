//! The settings of a store as Java sends them.

use std::path::PathBuf;
use std::time::Duration;

use sharestate::{Create, Options, SyncPolicy};

use crate::answer::Failure;
use crate::wire::{Reader, malformed};

/// Directory and settings, in the order in which `sharestate.StoreOptions` writes them. A number
/// below zero means: the default.
pub fn decode(bytes: &[u8]) -> Result<(PathBuf, Options), Failure> {
    let mut from = Reader::new(bytes);
    let directory = PathBuf::from(from.text()?);
    let mut options = Options::default();
    options.create = match from.i8()? {
        0 => Create::IfMissing,
        1 => Create::Never,
        2 => Create::New,
        other => return Err(malformed(&format!("there is no way {other} to create a store"))),
    };
    options.sync = match from.i64()? {
        0 => SyncPolicy::Always,
        -1 => SyncPolicy::Never,
        millis => SyncPolicy::Every(Duration::from_millis(positive("sync", millis)?)),
    };
    set(&mut from, "segment bytes", |bytes| options.segment_bytes = bytes)?;
    set(&mut from, "queue bytes", |bytes| options.queue_bytes = size(bytes))?;
    set(&mut from, "memory bytes", |bytes| options.memory_bytes = size(bytes))?;
    set(&mut from, "cache bytes", |bytes| options.cache_bytes = size(bytes))?;
    set(&mut from, "block cache bytes", |bytes| options.block_cache_bytes = size(bytes))?;
    set(&mut from, "checkpoint interval", |millis| {
        options.checkpoint_interval = Duration::from_millis(millis);
    })?;
    set(&mut from, "producer id expiration", |millis| {
        options.producer_id_expiration = Duration::from_millis(millis);
    })?;
    set(&mut from, "reserve bytes", |bytes| options.reserve_bytes = bytes)?;
    from.end()?;
    Ok((directory, options))
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn positive(what: &str, value: i64) -> Result<u64, Failure> {
    u64::try_from(value)
        .ok()
        .filter(|value| *value > 0)
        .ok_or_else(|| Failure::rejected(format!("option {what}: {value} is not above zero")))
}

fn set(from: &mut Reader<'_>, what: &str, apply: impl FnOnce(u64)) -> Result<(), Failure> {
    let value = from.i64()?;
    if value >= 0 {
        apply(positive(what, value)?);
    }
    Ok(())
}
