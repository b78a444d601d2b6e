//! The time that one input may take. libFuzzer's `-timeout` counts whole seconds of wall time; a
//! target here counts the processor time of the whole process, which other load on the machine
//! does not lengthen, and calls it a finding when an input takes more than its limit three times
//! in a row: the first time may have paid for what is made only once.

use std::sync::Once;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::bodies::Body;

/// What decoding one input may take, with the sanitizer, debug assertions and overflow checks in it.
pub const LIMIT: Duration = Duration::from_millis(100);

/// What a history may take that opens whole stores again and again: each of its steps is a small
/// part of it.
pub const HISTORY_LIMIT: Duration = Duration::from_secs(1);

/// Runs a body that decodes within its bound.
pub fn run(body: Body, input: &[u8]) {
    run_within(LIMIT, body, input);
}

/// Runs a body that plays a history within its bound.
pub fn run_history(body: Body, input: &[u8]) {
    run_within(HISTORY_LIMIT, body, input);
}

fn run_within(limit: Duration, body: Body, input: &[u8]) {
    static WARM: Once = Once::new();
    WARM.call_once(|| {
        crate::bodies::store_base::bases();
    });
    let took = (0..3).map(|_| measure(body, input)).take_while(|took| *took > limit);
    let took: Vec<Duration> = took.collect();
    assert!(took.len() < 3, "{} bytes take {took:?} of processor time", input.len());
}

fn measure(body: Body, input: &[u8]) -> Duration {
    let before = processor_time();
    body(input);
    processor_time().saturating_sub(before)
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
