//! Where output goes.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

/// The standard output, buffered. Whoever writes flushes at the end, so that errors show.
pub type Out = BufWriter<StdoutLock<'static>>;

pub fn stdout() -> Out {
    BufWriter::new(io::stdout().lock())
}

/// Writes one JSON object as a line.
pub fn json_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Writes one line to the standard error.
pub fn error_line(text: &str) -> io::Result<()> {
    io::stderr().write_all(format!("sharestate: {text}\n").as_bytes())
}

/// A number of things, such as `1 row` or `3 rows`.
pub fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}
