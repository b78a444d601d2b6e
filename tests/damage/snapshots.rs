//! A snapshot and a log that do not belong together: of different moments, or of different stores.

use std::path::PathBuf;

use sharestate::OpenError;
use sharestate::log::{LogError, Lsn};
use sharestate::snapshot::{Family, MemoryRows, RowOp, RowStore, Snapshot, SnapshotError};
use uuid::Uuid;

use crate::history::HISTORY;
use crate::image::{End, Image, Opened, rows_at};

fn with_rows(image: &Image, rows: MemoryRows) -> Opened {
    let image = Image { rows, ..image.clone() };
    image.open(&image.disk(), &|| "rows replaced".to_owned())
}

#[test]
fn an_old_snapshot_is_caught_up_from_the_log_or_refused_when_the_log_begins_too_late() {
    let image = Image::new(2, End::Marked);
    let first = image.segments[0];
    let mut cases = 0;
    let borders = image.segments.iter().flat_map(|first| first - 2..*first + 2);
    for applied in borders.chain(image.last_lsn - 2..=image.last_lsn) {
        let image = image.applied_at(applied);
        match image.open(&image.disk(), &|| format!("snapshot of {applied}")) {
            Opened::Whole(lsn) if applied + 1 >= first => assert_eq!(lsn, image.last_lsn),
            Opened::Refused(OpenError::Log(LogError::Missing { first: lsn, last, .. })) => {
                assert!(applied + 1 < first, "{applied}");
                assert_eq!((lsn, last), (applied + 1, first - 1));
            }
            other => panic!("snapshot of {applied}: {other:?}"),
        }
        cases += 1;
    }
    println!("old-snapshots={cases} lost=0");
}

#[test]
fn a_snapshot_of_a_longer_log_is_refused() {
    let image = Image::new(1, End::Marked);
    let last = image.last_lsn;
    for ahead in [1, 2, 64, 100] {
        match with_rows(&image, rows_at(last + ahead)) {
            Opened::Refused(OpenError::Log(LogError::BehindSnapshot {
                path,
                last_lsn,
                applied_lsn,
                ..
            })) => {
                assert_eq!(path, image.last_segment());
                assert_eq!((last_lsn, applied_lsn), (last, last + ahead));
            }
            other => panic!("{ahead} ahead: {other:?}"),
        }
    }
}

#[test]
fn a_log_restored_from_an_older_copy_is_refused_however_far_back_it_goes() {
    // The older copies: without the last segments, and with fewer frames in the last one.
    let image = Image::new(3, End::Marked);
    let image = image.applied_at(image.last_lsn);
    let mut cases = 0;
    for kept in 0..image.segments.len() {
        for frames in [0, 1, 30, 64] {
            let mut older = image.clone();
            for lost in &image.segments[kept + 1..] {
                older.files.remove(&image.segment(*lost));
            }
            let path = image.segment(image.segments[kept]);
            let mut bytes = image.bytes(&path).to_vec();
            let ends = crate::image::frames(&bytes);
            let end = if frames == 0 { 64 } else { ends[frames - 1].1 };
            bytes[end..].fill(0);
            older.files.insert(path.clone(), bytes);
            if kept + 1 == image.segments.len() && frames == 64 {
                // All that is missing is the mark: nothing is lost.
                let opened = older.open(&older.disk(), &|| "without the mark".to_owned());
                assert!(matches!(opened, Opened::Whole(lsn) if lsn == image.last_lsn));
                continue;
            }
            match older.open(&older.disk(), &|| format!("{kept} and {frames} frames")) {
                Opened::Refused(OpenError::Log(LogError::BehindSnapshot { path: at, .. })) => {
                    assert_eq!(at, path);
                }
                other => panic!("{kept} and {frames} frames: {other:?}"),
            }
            cases += 1;
        }
    }
    println!("old-logs={cases} lost=0");
}

/// The LSN at which a snapshot says it is.
fn set_lsn(rows: &MemoryRows, field: &str, lsn: Lsn) {
    let value = lsn.to_le_bytes().to_vec();
    rows.write(vec![RowOp::put(Family::Meta, field.as_bytes().to_vec(), value)]).expect("put");
}

#[test]
fn rows_that_are_newer_than_the_snapshot_says_are_refused() {
    // What is left when families of rows fall back to different moments. Replaying the log over
    // such rows would apply entries twice.
    let image = Image::new(1, End::Marked);
    let rows = rows_at(image.last_lsn - 10);
    set_lsn(&rows, "applied_lsn", image.applied);
    match with_rows(&image, rows) {
        Opened::Refused(error) => {
            assert!(error.to_string().contains("not newer than the row"), "{error}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_foreign_snapshot_and_one_without_its_identity_are_refused() {
    let image = Image::new(1, End::Marked);
    let rows = MemoryRows::default();
    let foreign = Uuid::from_u128(0xf0e1);
    Snapshot::create(Box::new(rows.clone()), foreign).expect("created");
    match with_rows(&image, rows) {
        Opened::Refused(OpenError::Snapshot(SnapshotError::Foreign {
            expected, found, ..
        })) => {
            assert_eq!((expected, found), (HISTORY.uuid, foreign));
        }
        other => panic!("{other:?}"),
    }
    let mut cases = 0;
    for field in ["uuid", "applied_lsn", "previous_applied_lsn"] {
        for damage in [None, Some(vec![]), Some(vec![1, 2, 3]), Some(vec![0; 17])] {
            let rows = image.rows.fork();
            let key = field.as_bytes().to_vec();
            let op = match damage {
                None => RowOp::delete(Family::Meta, key),
                Some(value) => RowOp::put(Family::Meta, key, value),
            };
            rows.write(vec![op]).expect("damaged");
            match with_rows(&image, rows) {
                Opened::Refused(OpenError::Snapshot(SnapshotError::NoIdentity {
                    field: named,
                    path,
                })) => assert_eq!((named, path), (field, PathBuf::from("(memory)"))),
                other => panic!("{field}: {other:?}"),
            }
            cases += 1;
        }
    }
    println!("snapshot-identities={} undetected=0", cases + 1);
}
