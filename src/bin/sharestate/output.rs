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

/// How long something took or is ago, in its two largest units.
pub fn duration(millis: i64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let mut rest = millis.max(0);
    let largest = units.iter().position(|(_, size)| rest >= *size).unwrap_or(units.len() - 1);
    let mut text = String::new();
    for (name, size) in units.into_iter().skip(largest).take(2) {
        if text.is_empty() || (rest >= size && name != "ms") {
            text += &format!("{}{name}", rest / size);
        }
        rest %= size;
    }
    text
}

/// A value, or a dash.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Columns that line up. The last one is as wide as it likes.
pub struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

/// Longer cells push what follows them to the right.
const CELL_WIDTH_MAX: usize = 64;

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub fn new(head: [&str; COLUMNS]) -> Self {
        Self { rows: vec![head.map(str::to_owned)] }
    }

    pub fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().min(CELL_WIDTH_MAX).max(*width);
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                line += &format!("{cell:width$}  ");
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_their_two_largest_units() {
        let millis = [0, 999, 1_000, 61_000, 3_600_000, 3_661_000, 90_000_000, i64::MAX, -5];
        let texts = millis.map(duration);
        let expected =
            ["0ms", "999ms", "1s", "1m1s", "1h", "1h1m", "1d1h", "106751991167d7h", "0ms"];
        assert_eq!(texts, expected);
    }
}
