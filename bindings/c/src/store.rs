//! Opening and closing, and the thread that runs a store's callbacks.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

use sharestate::blocking::block_on;
use sharestate::{Create, Options, ShareStore, SyncPolicy};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{Failure, clear};
use crate::guard::{guard, out, total, value};
use crate::handle::Table;
use crate::operation::{Operation, Reply};
use crate::running::Recipient;
use crate::types::*;

static STORES: Table<OpenStore> = Table::new();

/// What a store handle stands for.
pub(crate) struct OpenStore {
    store: ShareStore,
    callbacks: Handle,
    thread_id: ThreadId,
    stop: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
    outstanding: Mutex<Tally>,
    none_outstanding: Condvar,
}

/// Callbacks that are to come.
#[derive(Default)]
struct Tally {
    count: usize,
    /// No more are taken: the thread that would run them is about to end.
    closed: bool,
}

/// The store of a handle.
pub(crate) fn get(store: Store) -> Result<Arc<OpenStore>, Failure> {
    STORES.get(store).ok_or_else(|| Failure::handle("the store's"))
}

type Working = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

impl OpenStore {
    fn start(store: ShareStore) -> Result<Self, Failure> {
        let io = |error: std::io::Error| Failure::thread(&error);
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(io)?;
        let callbacks = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("sharestate-c".to_owned())
            .spawn(move || drop(runtime.block_on(stopped)))
            .map_err(io)?;
        Ok(Self {
            store,
            callbacks,
            thread_id: thread.thread().id(),
            stop: Mutex::new(Some((stop, thread))),
            outstanding: Mutex::default(),
            none_outstanding: Condvar::new(),
        })
    }

    /// Waits on this thread.
    pub fn run(&self, operation: Operation) -> Result<Reply, Failure> {
        block_on(operation.perform(self.store.clone()))
    }

    /// Begins on this thread, so that calls are judged in the order in which they were made, and
    /// ends with a callback on the callback thread.
    pub fn begin(
        self: &Arc<Self>,
        operation: Operation,
        recipient: Recipient,
    ) -> Result<(), Failure> {
        let count = self.count_one().ok_or_else(|| Failure::handle("the store's"))?;
        let mut working: Working = Box::pin(operation.perform(self.store.clone()));
        let begun = first_poll(&mut working);
        self.callbacks.spawn(async move {
            // Counted down whatever happens here.
            let _count = count;
            let result = match begun {
                Poll::Ready(result) => result,
                Poll::Pending => no_panic(working).await,
            };
            recipient.tell(result);
        });
        Ok(())
    }

    /// One more callback to come, unless the store is closed.
    fn count_one(self: &Arc<Self>) -> Option<Outstanding> {
        let mut tally = self.outstanding();
        if tally.closed {
            return None;
        }
        tally.count += 1;
        Some(Outstanding(Arc::clone(self)))
    }

    fn outstanding(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the store, waits for its callbacks and ends their thread.
    fn close(&self) -> Result<(), Failure> {
        self.outstanding().closed = true;
        let closed = block_on(self.store.close());
        let mut tally = self.outstanding();
        while tally.count > 0 {
            tally = self.none_outstanding.wait(tally).unwrap_or_else(PoisonError::into_inner);
        }
        drop(tally);
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = stop {
            let _ = stop.send(()); // It may be gone.
            let _ = thread.join();
        }
        Ok(closed?)
    }
}

/// One outstanding callback.
struct Outstanding(Arc<OpenStore>);

impl Drop for Outstanding {
    fn drop(&mut self) {
        let mut tally = self.0.outstanding();
        tally.count -= 1;
        if tally.count == 0 {
            self.0.none_outstanding.notify_all();
        }
    }
}

/// The first step of a call, on the caller's thread: it submits the command if there is room.
fn first_poll(working: &mut Working) -> Poll<Result<Reply, Failure>> {
    poll(working, &mut Context::from_waker(Waker::noop()))
}

/// A panic is an answer too.
fn poll(working: &mut Working, context: &mut Context<'_>) -> Poll<Result<Reply, Failure>> {
    let polled =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| working.as_mut().poll(context)));
    polled.unwrap_or_else(|panic| {
        Poll::Ready(Err(Failure::panic(&crate::guard::panic_text(&*panic))))
    })
}

async fn no_panic(mut working: Working) -> Result<Reply, Failure> {
    std::future::poll_fn(|context| poll(&mut working, context)).await
}

/// Fills options with their defaults.
///
/// # Safety
/// `options` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_options_init(options: *mut StoreOptions) {
    let defaults = total(None, || Some(defaults()));
    if let Some(defaults) = defaults {
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(options, defaults) };
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn defaults() -> StoreOptions {
    let options = Options::default();
    StoreOptions {
        size: size_of::<StoreOptions>(),
        create: 0,
        sync: 0,
        sync_every_ms: 0,
        segment_bytes: options.segment_bytes,
        queue_bytes: options.queue_bytes as u64,
        memory_bytes: options.memory_bytes as u64,
        cache_bytes: options.cache_bytes as u64,
        block_cache_bytes: options.block_cache_bytes as u64,
        checkpoint_log_bytes: 0,
        checkpoint_interval_ms: ms(options.checkpoint_interval),
        producer_id_expiration_ms: ms(options.producer_id_expiration),
        reserve_bytes: options.reserve_bytes,
    }
}

fn options(from: &StoreOptions) -> Result<Options, Failure> {
    if from.size != size_of::<StoreOptions>() {
        let (found, known) = (from.size, size_of::<StoreOptions>());
        let message = format!(
            "options.size is {found}, this library knows {known}: fill options with \
             sharestate_options_init, and compile with the header of this library"
        );
        return Err(Failure::argument(&message));
    }
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut options = Options::default();
    options.create = match from.create {
        0 => Create::IfMissing,
        1 => Create::Never,
        2 => Create::New,
        other => return Err(Failure::argument(&format!("options.create is {other}, not 0 to 2"))),
    };
    options.sync = match from.sync {
        0 => SyncPolicy::Always,
        1 => SyncPolicy::Every(Duration::from_millis(from.sync_every_ms)),
        2 => SyncPolicy::Never,
        other => return Err(Failure::argument(&format!("options.sync is {other}, not 0 to 2"))),
    };
    options.segment_bytes = from.segment_bytes;
    options.queue_bytes = bytes(from.queue_bytes);
    options.memory_bytes = bytes(from.memory_bytes);
    options.cache_bytes = bytes(from.cache_bytes);
    options.block_cache_bytes = bytes(from.block_cache_bytes);
    options.checkpoint_log_bytes =
        Some(from.checkpoint_log_bytes).filter(|checkpoint_log_bytes| *checkpoint_log_bytes > 0);
    options.checkpoint_interval = Duration::from_millis(from.checkpoint_interval_ms);
    options.producer_id_expiration = Duration::from_millis(from.producer_id_expiration_ms);
    options.reserve_bytes = from.reserve_bytes;
    Ok(options)
}

/// Opens the store in the directory `path`, recovering what a crash left, and puts its handle into
/// `*store`. `options` may be null for the defaults. Blocks on file work.
///
/// A second open of a directory that is open, by this process or another, is
/// `SHARESTATE_RETRIABLE` and changes nothing; so does any other failure but for want of space.
///
/// # Safety
/// `path` is as its length says; `options`, `store` and `error` are null or point to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_open(
    path: Text,
    options: *const StoreOptions,
    store: *mut Store,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        clear(store);
        guard(error, || {
            if store.is_null() {
                return Err(Failure::argument("store is null: there is nowhere to put the handle"));
            }
            let path = path_of(path)?;
            let from = if options.is_null() { defaults() } else { value(options, "options")? };
            let opened = OpenStore::start(ShareStore::open(&path, &self::options(&from)?)?)?;
            out(store, STORES.insert(Arc::new(opened)));
            Ok(())
        })
    }
}

/// # Safety
/// `path.data` is null or points to `path.length` bytes.
unsafe fn path_of(path: Text) -> Result<PathBuf, Failure> {
    // SAFETY: as promised for this function; copied before it returns.
    let bytes = unsafe { crate::guard::items(path.data.cast::<u8>(), path.length, "path") }?;
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(Failure::argument("path is empty or holds a zero byte"));
    }
    #[cfg(unix)]
    let path = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
    #[cfg(unix)]
    let path: &std::ffi::OsStr = path;
    #[cfg(not(unix))]
    let path = std::str::from_utf8(bytes).map_err(|_| Failure::argument("path is not UTF-8"))?;
    Ok(PathBuf::from(path))
}

/// Closes a store: answers what was called, takes a last checkpoint, waits until every callback has
/// returned, and makes the handle none. Calls that other threads begin meanwhile fail. After it no
/// callback of the store runs, whatever it answers; everything answered before is on disk, also
/// when it fails.
///
/// Called from a callback of the same store it would wait for itself: that is
/// `SHARESTATE_REJECTED`, and the store stays open. Closing again is `SHARESTATE_INVALID_HANDLE`.
///
/// # Safety
/// `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_close(store: Store, error: *mut Error) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        guard(error, || {
            if get(store)?.thread_id == std::thread::current().id() {
                let message = "a store cannot be closed from one of its own callbacks";
                return Err(Failure::rejected(42, message));
            }
            STORES.remove(store).ok_or_else(|| Failure::handle("the store's"))?.close()
        })
    }
}

/// What opening found and did.
///
/// # Safety
/// `recovery` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_recovery(store: Store, recovery: *mut Recovery) -> Status {
    look(store, |open| {
        let report = open.store.recovery();
        let found = Recovery {
            last_lsn: report.last_lsn,
            snapshot_lsn: report.snapshot_lsn,
            replayed: report.replayed,
            incarnation: report.incarnation,
            elapsed_us: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
            created: u8::from(report.created),
            repaired: u8::from(report.repair.is_some()),
        };
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(recovery, found) };
    })
}

/// What is durable and what is in the snapshot.
///
/// # Safety
/// `progress` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_progress(store: Store, progress: *mut Progress) -> Status {
    look(store, |open| {
        let now = open.store.progress();
        let found = Progress { durable_lsn: now.durable_lsn, applied_lsn: now.applied_lsn };
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(progress, found) };
    })
}

/// The store's identity: puts 16 bytes into `uuid`.
///
/// # Safety
/// `uuid` is null or valid for a write of 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_uuid(store: Store, uuid: *mut u8) -> Status {
    look(store, |open| {
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(uuid.cast::<[u8; 16]>(), *open.store.uuid().as_bytes()) };
    })
}

fn look(store: Store, at: impl FnOnce(&OpenStore)) -> Status {
    total(SHARESTATE_INTERNAL, || match STORES.get(store) {
        Some(open) => {
            at(&open);
            SHARESTATE_OK
        }
        None => SHARESTATE_INVALID_HANDLE,
    })
}
