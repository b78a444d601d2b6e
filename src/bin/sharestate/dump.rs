//! `dump`

use std::io::{self, Write as _};
use std::process::ExitCode;

use sharestate::inspect::json::EntryJson;
use sharestate::inspect::{TailNote, dump};
use sharestate::log::TailVerdict;

use crate::args;
use crate::failure::{DAMAGE, Failure};
use crate::output::{error_line, stdout};

pub fn run(args: &args::Dump) -> Result<ExitCode, Failure> {
    let mut out = stdout();
    let mut damaged = 0_u64;
    let report = dump(&args.dir, args.from_lsn, &mut |entry| -> io::Result<()> {
        damaged += u64::from(entry.is_damaged());
        if args.json {
            serde_json::to_writer(&mut out, &EntryJson::new(entry))?;
            out.write_all(b"\n")
        } else {
            writeln!(out, "{entry}")
        }
    });
    out.flush()?; // what was read before an error is worth seeing
    if let TailVerdict::Torn(torn) = &report?.verdict {
        error_line(&TailNote(torn).to_string())?;
    }
    if damaged > 0 {
        error_line(&format!("{damaged} entries do not decode although their checksums match"))?;
        return Ok(ExitCode::from(DAMAGE));
    }
    Ok(ExitCode::SUCCESS)
}
