//! Damage of whole files: headers, lengths, and what stands behind the end.

use sharestate::{Condition, Salvaged};

use crate::sim::{Disk, Killed, frames, killed, works_on};

/// Repairs or salvages, whatever it takes; answers the last LSN kept and whether it may lose any.
fn mend(disk: &Disk, context: &str) -> (u64, bool) {
    let plan = disk.plan().unwrap_or_else(|error| panic!("{context}: {error}"));
    match plan.condition().clone() {
        Condition::Torn(torn) => {
            plan.cut().unwrap_or_else(|error| panic!("{context}: {error}"));
            (torn.lsn - 1, false)
        }
        Condition::Damaged(damage) => {
            let done = plan.salvage(false).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(matches!(done, Salvaged::Kept { .. }), "{context}");
            (damage.log.last_lsn, damage.loses())
        }
        other => panic!("{context}: {other:?}"),
    }
}

#[test]
fn rot_in_a_segment_header_costs_nothing() {
    let mut headers = 0;
    for checkpoint in [true, false] {
        let Killed { disk, states, last, .. } = killed(checkpoint);
        for file in disk.wal().keys() {
            for byte in [0, 9, 20, 35, 45, 50, 58, 63] {
                let context = format!("{}, byte {byte}", file.display());
                let disk = disk.same();
                disk.change(file, |bytes| bytes[byte] ^= 4);
                let mended = match disk.plan() {
                    // A damaged format version never passes for a newer one: its checksum is wrong.
                    Err(error) => panic!("{context}: {error}"),
                    Ok(plan) => {
                        drop(plan);
                        mend(&disk, &context)
                    }
                };
                assert_eq!(mended, (last, false), "{context}");
                works_on(&disk, &states[last as usize], &context);
                headers += 1;
            }
        }
    }
    println!("rotten-headers={headers} lost=0");
}

#[test]
fn a_segment_cut_short_anywhere_keeps_its_whole_frames() {
    let Killed { disk, states, applied, last } = killed(true);
    let wal = disk.wal();
    let all = frames(&wal);
    let mut cuts = 0;
    for (file, bytes) in &wal {
        for cut in (1..bytes.len()).step_by(61) {
            let context = format!("{} cut at {cut}", file.display());
            let disk = disk.same();
            disk.change(file, |bytes| bytes.truncate(cut));
            let (kept, _) = mend(&disk, &context);
            let ends = |index: usize| match all.get(index + 1) {
                Some(next) if next.file == all[index].file => next.offset,
                _ => bytes.iter().rposition(|byte| *byte != 0).expect("used") + 1,
            };
            let hurt = all.iter().enumerate().find(|(index, frame)| {
                frame.file == *file
                    && frame.entries > 0
                    && frame.first_lsn > applied
                    && ends(*index) > cut
            });
            let whole = hurt.map_or(last, |(_, frame)| frame.first_lsn - 1);
            // The last bytes of a frame may be padding, which the end of the file stands for.
            assert!(kept == whole || kept == whole + 1, "{context}: kept {kept}, whole {whole}");
            works_on(&disk, &states[kept as usize], &context);
            cuts += 1;
        }
    }
    println!("short-segments={cuts}");
    assert!(cuts > 150, "{cuts}");
}

#[test]
fn bytes_behind_the_end_of_a_segment_cost_nothing() {
    let Killed { disk, states, last, .. } = killed(true);
    for file in disk.wal().keys() {
        for extra in [vec![0; 1], vec![0; 9_999], vec![7; 64]] {
            let context = format!("{} and {} bytes", file.display(), extra.len());
            let disk = disk.same();
            disk.change(file, |bytes| bytes.extend_from_slice(&extra));
            let (kept, _) = mend(&disk, &context);
            assert_eq!(kept, last, "{context}");
            works_on(&disk, &states[last as usize], &context);
        }
    }
}
