//! Loads what has been read and judged.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::{ImportError, Input};
use crate::blocking::block_on;
use crate::error::StoreError;
use crate::inspect::{OnProgress, Progress};
use crate::model::{Rejection, SharePartitionKey};
use crate::store::ShareStore;

/// Imports under way at once: enough to fill frames, few enough for the queue.
const WIDTH: usize = 256;

/// What was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// Share partitions imported.
    pub partitions: u64,
    /// Of these, such as existed and were replaced.
    pub replaced: u64,
    /// State batches in them.
    pub batches: u64,
    /// Ranges of staged transactional acks that went with what was replaced.
    pub dropped_pending: u64,
}

/// Loads an input. Blocks: not for async code.
///
/// # Errors
/// [`ImportError::Exists`] before anything is loaded; [`ImportError::Load`] when the store fails on
/// the way.
pub fn load(
    store: &ShareStore,
    input: Input,
    replace: bool,
    progress: OnProgress<'_>,
) -> Result<Loaded, ImportError> {
    block_on(async {
        let (first, count) = existing(store, &input).await.map_err(ImportError::Store)?;
        if let Some(key) = first.filter(|_| !replace) {
            return Err(ImportError::Exists { key: Box::new(key), count });
        }
        let total = input.partitions.len() as u64;
        let mut loaded = Loaded { replaced: count, ..Loaded::default() };
        let jobs = input.partitions.into_iter().map(|(key, partition)| async move {
            let batches = partition.batches.len() as u64;
            match store.import(&key, partition, replace).await {
                Ok(dropped) => Ok((batches, dropped.len() as u64)),
                Err(source) => Err((key, source)),
            }
        });
        bounded(jobs, WIDTH, &mut |done| {
            match done {
                Ok((batches, dropped)) => {
                    loaded.batches += batches;
                    loaded.dropped_pending += dropped;
                }
                Err((key, source)) => {
                    let (key, loaded) = (Box::new(key), loaded.partitions);
                    return Err(ImportError::Load { key, loaded, source });
                }
            }
            loaded.partitions += 1;
            progress(Progress { stage: "loading", done: loaded.partitions, total });
            Ok(())
        })
        .await?;
        Ok(loaded)
    })
}

/// The first share partition that the store holds already, and how many there are.
async fn existing(
    store: &ShareStore,
    input: &Input,
) -> Result<(Option<SharePartitionKey>, u64), StoreError> {
    let (mut first, mut count) = (None, 0);
    let jobs = input.partitions.keys().map(|key| async move {
        let exists = exists(store, key).await;
        exists.map(|exists| exists.then_some(key))
    });
    bounded(jobs, WIDTH, &mut |found| {
        if let Some(key) = found? {
            count += 1;
            // They come in any order.
            first = Some(first.map_or(key, |first: &SharePartitionKey| first.min(key)));
        }
        Ok::<_, StoreError>(())
    })
    .await?;
    Ok((first.cloned(), count))
}

/// Reads as a leader of epoch 0, which is never above the fence and so never changes anything.
async fn exists(store: &ShareStore, key: &SharePartitionKey) -> Result<bool, StoreError> {
    match store.read(key, 0).await {
        Ok(_) | Err(StoreError::Rejected(Rejection::FencedLeaderEpoch { .. })) => Ok(true),
        Err(StoreError::Rejected(Rejection::InvalidRequest(_))) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Runs futures, `width` of them at once, until all are done or `done` fails.
async fn bounded<F: Future, E>(
    mut jobs: impl Iterator<Item = F>,
    width: usize,
    done: &mut dyn FnMut(F::Output) -> Result<(), E>,
) -> Result<(), E> {
    let mut running: Vec<Pin<Box<F>>> = Vec::with_capacity(width);
    poll_fn(|context| {
        loop {
            let room = width.saturating_sub(running.len());
            running.extend(jobs.by_ref().take(room).map(Box::pin));
            if running.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let mut results = Vec::new();
            running.retain_mut(|job| match job.as_mut().poll(context) {
                Poll::Ready(result) => {
                    results.push(result);
                    false
                }
                Poll::Pending => true,
            });
            if results.is_empty() {
                return Poll::Pending;
            }
            for result in results {
                if let Err(error) = done(result) {
                    return Poll::Ready(Err(error));
                }
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_width_run_at_once_and_all_are_done() {
        use std::cell::Cell;
        let (running, most) = (Cell::new(0), Cell::new(0));
        let jobs = (0..50_u32).map(|n| {
            let (running, mut polls) = (&running, n % 3);
            running.set(running.get() + 1);
            most.set(most.get().max(running.get()));
            poll_fn(move |context| {
                if polls == 0 {
                    running.set(running.get() - 1);
                    return Poll::Ready(n);
                }
                polls -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            })
        });
        let mut seen = Vec::new();
        let done: Result<(), ()> = block_on(bounded(jobs, 7, &mut |n| {
            seen.push(n);
            Ok(())
        }));
        assert_eq!((done, most.get()), (Ok(()), 7));
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
    }
}
