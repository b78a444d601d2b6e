//! What a repair found, would do and did, as text and as JSON.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use sharestate::inspect::{Finding, OneLine};
use sharestate::log::salvage::Place;
use sharestate::{Condition, Damage, Repair, Repaired};

use crate::output::counted;

/// Names listed in text; JSON has all.
const LISTED: usize = 20;

#[derive(Serialize)]
pub struct Report {
    /// `whole`, `torn`, `damaged` or `interrupted`.
    condition: &'static str,
    /// `nothing`, `cut` or `salvaged`; what was done, not what would be.
    done: &'static str,
    torn: Option<PlaceJson>,
    leftovers: Vec<String>,
    /// Damage in RocksDB's own files that costs nothing.
    healed: Vec<String>,
    damage: Option<DamageJson>,
    /// The copy that was made before.
    evidence: Option<String>,
    next_lsn: Option<u64>,
    incarnation: Option<u64>,
}

#[derive(Serialize)]
struct PlaceJson {
    file: String,
    offset: u64,
    bytes: u64,
    lsn: u64,
    reason: String,
}

#[derive(Serialize)]
struct DamageJson {
    cause: String,
    hopeless: Option<String>,
    snapshot_lsn: Option<u64>,
    kept_lsn: u64,
    kept_entries: u64,
    unreadable: Vec<PlaceJson>,
    more_unreadable: u64,
    stop: Option<PlaceJson>,
    lost_entries: u64,
    lost_first_lsn: Option<u64>,
    lost_last_lsn: Option<u64>,
    may_have_lost: Option<String>,
    partitions: Vec<String>,
    producers: Vec<i64>,
    open: Vec<OpenJson>,
}

#[derive(Serialize)]
struct OpenJson {
    producer_id: i64,
    epoch: i16,
    partitions: usize,
}

impl From<&Place> for PlaceJson {
    fn from(place: &Place) -> Self {
        Self {
            file: place.path.display().to_string(),
            offset: place.offset,
            bytes: place.bytes,
            lsn: place.lsn,
            reason: place.reason.clone(),
        }
    }
}

impl From<&Damage> for DamageJson {
    fn from(damage: &Damage) -> Self {
        let log = &damage.log;
        Self {
            cause: damage.cause.clone(),
            hopeless: damage.hopeless(),
            snapshot_lsn: damage.snapshot_lsn,
            kept_lsn: log.last_lsn,
            kept_entries: log.kept,
            unreadable: log.damage.iter().map(Into::into).collect(),
            more_unreadable: log.more_damage,
            stop: log.stop.as_ref().map(Into::into),
            lost_entries: log.lost,
            lost_first_lsn: log.lost_lsns.map(|(first, _)| first),
            lost_last_lsn: log.lost_lsns.map(|(_, last)| last),
            may_have_lost: log.doubt.clone(),
            partitions: damage.partitions.iter().map(ToString::to_string).collect(),
            producers: damage.producers.iter().copied().collect(),
            open: damage
                .open
                .iter()
                .map(|open| OpenJson {
                    producer_id: open.producer_id,
                    epoch: open.epoch,
                    partitions: open.partitions,
                })
                .collect(),
        }
    }
}

impl Report {
    pub fn new(repair: &Repair<'_>, healed: &[Finding]) -> Self {
        let (condition, torn, damage) = match repair.condition() {
            Condition::Whole => ("whole", None, None),
            Condition::Torn(torn) => ("torn", Some(torn), None),
            Condition::Damaged(damage) => ("damaged", None, Some(&**damage)),
            Condition::Interrupted => ("interrupted", None, None),
        };
        let torn = torn.map(|torn| PlaceJson {
            file: torn.path.display().to_string(),
            offset: torn.offset,
            bytes: torn.bytes,
            lsn: torn.lsn,
            reason: torn.reason.clone(),
        });
        let leftovers = repair.leftovers().iter().map(|path| path.display().to_string());
        Self {
            condition: if healed.is_empty() { condition } else { "damaged" },
            done: "nothing",
            torn,
            leftovers: leftovers.collect(),
            healed: healed.iter().map(ToString::to_string).collect(),
            damage: damage.map(Into::into),
            evidence: None,
            next_lsn: damage.map(Damage::next_lsn),
            incarnation: None,
        }
    }

    pub fn needs_salvage(&self) -> bool {
        matches!(self.condition, "damaged" | "interrupted")
    }

    pub fn is_hopeless(&self) -> bool {
        self.damage.as_ref().is_some_and(|damage| damage.hopeless.is_some())
    }

    pub fn repaired(mut self, done: Option<&Repaired>) -> Self {
        if let Some(done) = done {
            self.done = "cut";
            self.evidence = done.log.evidence.as_ref().map(|path| path.display().to_string());
            self.incarnation = Some(done.incarnation);
        }
        self
    }

    pub fn salvaged(mut self, evidence: &Path, next_lsn: u64, incarnation: u64) -> Self {
        self.done = "salvaged";
        self.evidence = Some(evidence.display().to_string());
        (self.next_lsn, self.incarnation) = (Some(next_lsn), Some(incarnation));
        self
    }

    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        for finding in &self.healed {
            writeln!(out, "damage    {finding}")?;
        }
        if !self.healed.is_empty() {
            writeln!(out, "lose      nothing: the log has all of it")?;
        }
        if let Some(torn) = &self.torn {
            writeln!(
                out,
                "torn      {} at byte {}: {} of an unfinished frame, LSN {} ({})",
                torn.file,
                torn.offset,
                counted(torn.bytes, "byte"),
                torn.lsn,
                torn.reason
            )?;
        }
        for path in &self.leftovers {
            writeln!(out, "leftover  {path}")?;
        }
        if let Some(damage) = &self.damage {
            damage.print(out)?;
        }
        if self.condition == "interrupted" {
            writeln!(out, "salvage   interrupted; it goes on where it was, and loses no more")?;
        }
        self.verdict(out)
    }

    fn verdict(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(evidence) = &self.evidence {
            writeln!(out, "copied    {evidence}")?;
        }
        match (self.done, self.condition) {
            ("salvaged", _) => {
                let next_lsn = self.next_lsn.unwrap_or(0);
                writeln!(out, "done      salvaged; LSNs go on at {next_lsn}")
            }
            ("cut", "torn") => writeln!(out, "done      cut; nothing that was answered is lost"),
            ("cut", _) => writeln!(out, "done      leftovers cleared; nothing is lost"),
            (_, "torn") => writeln!(out, "to do     cut it; nothing that was answered is lost"),
            (_, "whole") if !self.leftovers.is_empty() => {
                writeln!(out, "to do     clear leftovers; nothing is lost")
            }
            (_, "whole") => writeln!(out, "done      nothing to do, the store is whole"),
            _ if self.is_hopeless() => writeln!(out, "to do     restore a backup"),
            _ => writeln!(out, "to do     --salvage goes on from there; look for a backup first"),
        }
    }
}

impl DamageJson {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "damage    {}", OneLine(&self.cause))?;
        for place in &self.unreadable {
            let bytes = counted(place.bytes, "byte");
            let (file, offset, reason) = (&place.file, place.offset, &place.reason);
            writeln!(out, "rotten    {file} at byte {offset}: {bytes} ({reason})")?;
        }
        if self.more_unreadable > 0 {
            writeln!(out, "rotten    {} more", counted(self.more_unreadable, "place"))?;
        }
        if let Some(reason) = &self.hopeless {
            return writeln!(out, "keep      nothing: {reason}");
        }
        let entries = if self.kept_entries == 1 { "entry" } else { "entries" };
        let from = match self.snapshot_lsn {
            Some(lsn) => format!("the snapshot, at LSN {lsn}, and"),
            None => "a snapshot made anew from".to_owned(),
        };
        writeln!(
            out,
            "keep      everything up to LSN {}: {from} {} {entries} of the log",
            self.kept_lsn, self.kept_entries
        )?;
        self.print_loss(out)
    }

    fn print_loss(&self, out: &mut impl Write) -> io::Result<()> {
        if self.lost_entries == 0 && self.may_have_lost.is_none() {
            return writeln!(out, "lose      nothing");
        }
        if let (Some(first), Some(last)) = (self.lost_first_lsn, self.lost_last_lsn) {
            let entries = if self.lost_entries == 1 { "entry" } else { "entries" };
            writeln!(
                out,
                "lose      {} {entries} that still read, LSN {first} to {last}, as they rest on \
                 others that do not",
                self.lost_entries
            )?;
        }
        if let Some(doubt) = &self.may_have_lost {
            let from = self.kept_lsn.saturating_add(1);
            writeln!(out, "lose      whatever else was from LSN {from} on: {doubt}")?;
        }
        list(out, "older     share partition", self.partitions.iter().map(OneLine))?;
        if self.may_have_lost.is_some() {
            writeln!(out, "older     any other share partition that what does not read was about")?;
        }
        list(
            out,
            "repeat    the markers, and look at the acks, of producer",
            self.producers.iter(),
        )?;
        let open = self.open.iter().map(|open| {
            let partitions = counted(open.partitions as u64, "share partition");
            format!("{} epoch {}, in {partitions}", open.producer_id, open.epoch)
        });
        list(out, "prepared  still, though it may have ended in what is lost: producer", open)
    }
}

fn list(
    out: &mut impl Write,
    what: &str,
    names: impl ExactSizeIterator<Item = impl std::fmt::Display>,
) -> io::Result<()> {
    let more = names.len().saturating_sub(LISTED);
    for name in names.take(LISTED) {
        writeln!(out, "{what} {name}")?;
    }
    if more > 0 {
        writeln!(out, "{what}: {more} more")?;
    }
    Ok(())
}
