//! What the store's threads have to say (`tracing` events) on its way to Java's log.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Condvar, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Lines that may wait; older ones are dropped and counted when nobody fetches them.
const WAITING: usize = 1_000;

static LINES: Lines = Lines { waiting: Mutex::new((VecDeque::new(), 0)), arrived: Condvar::new() };

struct Lines {
    waiting: Mutex<(VecDeque<(i8, String)>, u64)>,
    arrived: Condvar,
}

/// Takes over the process's `tracing` events, unless this library did so before.
pub fn install() {
    // Fails when it is installed already: the library is loaded by a second class loader.
    drop(tracing::subscriber::set_global_default(Collector));
}

/// Waits for the next line: a level (0 error, 1 warning, 2 information) and a text.
pub fn wait() -> (i8, String) {
    let mut waiting = LINES.waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if waiting.1 > 0 {
            let dropped = std::mem::take(&mut waiting.1);
            return (1, format!("{dropped} lines of the store's log were dropped"));
        }
        if let Some(line) = waiting.0.pop_front() {
            return line;
        }
        waiting = LINES.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Formats events; spans are of no interest.
struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("sharestate")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            Level::ERROR => 0,
            Level::WARN => 1,
            _ => 2,
        };
        let mut waiting = LINES.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.0.len() == WAITING {
            waiting.0.pop_front();
            waiting.1 += 1;
        }
        waiting.0.push_back((level, line.message + &line.fields));
        LINES.arrived.notify_one();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message, then its fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}: {value:?}"),
        };
    }
}
