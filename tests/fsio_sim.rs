//! The simulated file system forgets exactly what was not synced.
#![cfg(feature = "testing")]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use sharestate::fsio::sim::{
    Content, EINTR, EIO, ENOSPC, Fault, Keep, PageModel, Repeat, SimFs, Survivors, Transfer, When,
};
use sharestate::fsio::{
    Fs, FsFile, FsOp, LockError, OpenMode, read_up_to, write_all_at, write_durably,
};

const LOST: PageModel = PageModel::UnsyncedLost;

fn random(seed: u64) -> PageModel {
    PageModel::Random { seed, granularity: 512 }
}

fn durable_file(sim: &SimFs, path: &Path, content: &[u8]) -> Box<dyn FsFile> {
    let file = sim.open(path, OpenMode::CreateNew).expect("created");
    write_all_at(&*file, content, 0).expect("written");
    file.sync_all().expect("synced");
    sim.sync_dir(Path::new("/")).expect("synced");
    file
}

#[test]
fn content_survives_a_power_cut_only_after_a_sync_of_the_file() {
    let sim = SimFs::new(0);
    let path = Path::new("/file");
    let file = durable_file(&sim, path, b"old content");
    write_all_at(&*file, b"new", 0).expect("written");
    file.set_len(5).expect("cut");
    assert_eq!(sim.content(path).expect("live"), b"new c");
    assert_eq!(sim.power_cut(LOST).content(path).expect("durable"), b"old content");
    assert_eq!(sim.power_cut(PageModel::AllKept).content(path).expect("kept"), b"new c");
    assert_eq!(sim.restart().power_cut(LOST).content(path).expect("durable"), b"old content");
    file.sync_data().expect("synced");
    assert_eq!(sim.power_cut(LOST).content(path).expect("durable"), b"new c");
}

#[test]
fn names_survive_a_power_cut_only_after_a_sync_of_the_directory() {
    let sim = SimFs::new(0);
    let names = |sim: &SimFs| -> Vec<String> {
        let entries = sim.list(Path::new("/")).expect("listed");
        entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect()
    };
    durable_file(&sim, Path::new("/a"), b"a");
    let file = sim.open(Path::new("/b"), OpenMode::CreateNew).expect("created");
    write_all_at(&*file, b"b", 0).expect("written");
    file.sync_all().expect("synced");
    assert_eq!(names(&sim.power_cut(LOST)), ["a"], "syncing a file does not sync its name");
    sim.sync_dir(Path::new("/")).expect("synced");
    assert_eq!(names(&sim.power_cut(LOST)), ["a", "b"]);
    sim.rename(Path::new("/b"), Path::new("/c")).expect("renamed");
    sim.remove_file(Path::new("/a")).expect("removed");
    assert_eq!(names(&sim), ["c"]);
    assert_eq!(names(&sim.power_cut(LOST)), ["a", "b"]);
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        seen.insert(names(&sim.power_cut(random(seed))).join(""));
    }
    let all: BTreeSet<String> = ["ab", "ac", "b", "c"].map(String::from).into();
    assert_eq!(seen, all, "every subset happens");
    sim.sync_dir(Path::new("/")).expect("synced");
    assert_eq!(names(&sim.power_cut(LOST)), ["c"]);
}

#[test]
fn what_is_in_a_directory_without_a_durable_name_is_lost_with_it() {
    let sim = SimFs::new(0);
    sim.create_dir(Path::new("/dir")).expect("created");
    write_durably(&sim, Path::new("/dir"), "file", b"x").expect("written");
    assert!(sim.power_cut(LOST).content(Path::new("/dir/file")).is_none());
    sim.sync_dir(Path::new("/")).expect("synced");
    assert!(sim.power_cut(LOST).content(Path::new("/dir/file")).is_some());
}

#[test]
fn of_unsynced_pages_any_subset_survives_and_of_a_page_any_moment() {
    let sim = SimFs::new(0);
    let path = Path::new("/file");
    let file = durable_file(&sim, path, &[0; 2048]);
    write_all_at(&*file, &[1; 2048], 0).expect("written");
    write_all_at(&*file, &[2; 512], 512).expect("written");
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let after = sim.power_cut(random(seed));
        let content = after.content(path).expect("the file");
        assert_eq!(content.len(), 2048);
        let sectors: Vec<u8> = content.chunks(512).map(|sector| sector[0]).collect();
        assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        assert_eq!(after.content(path), after.power_cut(LOST).content(path), "durable again");
        seen.insert(sectors);
    }
    assert_eq!(seen.len(), 2 * 3 * 2 * 2, "{seen:?}");
    let again = sim.power_cut(random(7)).content(path);
    assert_eq!(sim.power_cut(random(7)).content(path), again, "the seed decides");
}

#[test]
fn a_failed_sync_leaves_pages_visible_that_no_later_sync_makes_durable() {
    let sim = SimFs::new(0);
    let path = Path::new("/file");
    let file = durable_file(&sim, path, b"old");
    write_all_at(&*file, b"new", 0).expect("written");
    sim.fail(Fault { when: When::Op(FsOp::SyncData), errno: EIO, repeat: Repeat::Once });
    assert_eq!(file.sync_data().expect_err("failed").raw_os_error(), Some(EIO));
    file.sync_data().expect("the kernel has forgotten");
    assert_eq!(sim.content(path).expect("live"), b"new");
    assert_eq!(sim.power_cut(LOST).content(path).expect("durable"), b"old");
    write_all_at(&*file, b"new", 0).expect("written again");
    file.sync_data().expect("synced");
    assert_eq!(sim.power_cut(LOST).content(path).expect("durable"), b"new");
}

#[test]
fn a_crash_stops_the_world_before_or_after_the_call_that_was_named() {
    for (after, expected) in [(false, &b""[..]), (true, b"x")] {
        let sim = SimFs::new(0);
        let path = Path::new("/file");
        let file = durable_file(&sim, path, b"");
        let call = sim.calls() + 1;
        if after {
            sim.crash_after(call);
        } else {
            sim.crash_before(call);
        }
        assert!(!sim.is_crashed());
        write_all_at(&*file, b"x", 0).expect_err("crashed");
        assert!(sim.is_crashed());
        file.sync_all().expect_err("crashed");
        sim.list(Path::new("/")).expect_err("crashed");
        assert_eq!(sim.power_cut(PageModel::AllKept).content(path).expect("there"), expected);
        assert_eq!(sim.power_cut(LOST).content(path).expect("there"), b"");
    }
}

#[test]
fn faults_strike_once_or_from_then_on_where_they_are_told_to() {
    let sim = SimFs::new(0);
    let file = durable_file(&sim, Path::new("/file"), b"");
    let fault = |when, repeat| Fault { when, errno: EIO, repeat };
    sim.fail(fault(When::Call(sim.calls() + 2), Repeat::Sticky));
    write_all_at(&*file, b"a", 0).expect("not yet");
    write_all_at(&*file, b"b", 1).expect_err("now");
    write_all_at(&*file, b"c", 1).expect_err("from now on");
    file.sync_data().expect("another kind of call");
    sim.clear_faults();
    write_all_at(&*file, b"d", 1).expect("repaired");
    sim.fail(fault(When::Matching(|call| call.op == FsOp::Write && call.offset > 5), Repeat::Once));
    write_all_at(&*file, b"e", 5).expect("not this one");
    write_all_at(&*file, b"f", 6).expect_err("this one");
    write_all_at(&*file, b"f", 6).expect("once");
    let writes = sim.trace().iter().filter(|call| call.op == FsOp::Write).count();
    assert_eq!(writes, 7);
}

#[test]
fn helpers_continue_short_transfers_and_repeat_interrupted_ones() {
    let sim = SimFs::new(3);
    let content: Vec<u8> = (0..=255).collect();
    for transfer in [Transfer::AtMost(1), Transfer::AtMost(7), Transfer::UpTo(50)] {
        let path = format!("/{transfer:?}");
        let path = Path::new(&path);
        let file = durable_file(&sim, path, b"");
        sim.set_reads(transfer);
        sim.set_writes(transfer);
        sim.interrupt_every(2);
        write_all_at(&*file, &content, 3).expect("written");
        let mut bytes = vec![0; 300];
        assert_eq!(read_up_to(&*file, &mut bytes, 3).expect("read"), 256);
        assert_eq!(bytes[..256], content);
        sim.clear_faults();
    }
    let file = durable_file(&sim, Path::new("/one"), b"");
    sim.fail(Fault { when: When::Op(FsOp::Write), errno: EINTR, repeat: Repeat::Once });
    let error = file.write_at(b"x", 0).expect_err("interrupted");
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}

#[test]
fn a_full_disk_takes_what_fits_and_still_overwrites() {
    let sim = SimFs::new(0);
    let file = durable_file(&sim, Path::new("/file"), &[1; 100]);
    sim.set_capacity(Some(150));
    assert_eq!(file.write_at(&[2; 100], 90).expect("a short write"), 60);
    let error = write_all_at(&*file, &[2; 1], 150).expect_err("full");
    assert!(error.is_full());
    write_all_at(&*file, &[3; 150], 0).expect("overwritten");
    assert!(file.allocate(151).expect_err("full").is_full());
    let other = sim.open(Path::new("/other"), OpenMode::CreateNew).expect("a name is free");
    assert!(write_all_at(&*other, b"x", 0).expect_err("full").is_full());
    assert_eq!(sim.used(), 150);
    sim.remove_file(Path::new("/file")).expect("removed");
    write_all_at(&*other, b"x", 0).expect("space again");
}

#[test]
fn a_lock_is_held_once_and_not_across_a_restart() {
    let sim = SimFs::new(0);
    let path = Path::new("/LOCK");
    let guard = sim.lock(path).expect("free");
    assert!(matches!(sim.lock(path), Err(LockError::Held { .. })));
    drop(sim.restart().lock(path).expect("another process, after this one died"));
    drop(guard);
    sim.lock(path).expect("free again");
}

#[test]
fn a_durable_replace_is_whole_or_absent_at_every_crash() {
    let path = Path::new("/STORE");
    let dry = SimFs::new(0);
    write_durably(&dry, Path::new("/"), "STORE", b"first").expect("written");
    let from = dry.calls();
    write_durably(&dry, Path::new("/"), "STORE", b"second").expect("written");
    let mut states = 0;
    for call in from + 1..=dry.calls() {
        let sim = SimFs::new(0);
        write_durably(&sim, Path::new("/"), "STORE", b"first").expect("written");
        sim.crash_before(call);
        write_durably(&sim, Path::new("/"), "STORE", b"second").expect_err("crashed");
        for model in (0..20).map(random).chain([LOST, PageModel::AllKept]) {
            let after = sim.power_cut(model);
            let content = after.content(path).expect("never absent");
            assert!(content == b"first" || content == b"second", "{content:?}");
            write_durably(&after, Path::new("/"), "STORE", b"third").expect("goes on");
            assert_eq!(after.power_cut(LOST).content(path).expect("there"), b"third");
            states += 1;
        }
    }
    println!("{states} states");
}

/// Only the names, or only the writes, that `keep` picks; of the other everything.
fn names(keep: Keep) -> Survivors {
    Survivors { names: keep, content: Content::Writes(Keep::All) }
}

fn writes(keep: Keep) -> Survivors {
    Survivors { names: Keep::All, content: Content::Writes(keep) }
}

#[test]
fn chosen_names_are_lost_and_all_others_survive() {
    let sim = SimFs::new(0);
    for name in ["/a", "/b", "/c"] {
        sim.open(Path::new(name), OpenMode::CreateNew).expect("created");
    }
    let unsynced = sim.unsynced_names();
    assert_eq!(
        unsynced.iter().map(|call| &*call.path).collect::<Vec<_>>(),
        [Path::new("/a"), Path::new("/b"), Path::new("/c")]
    );
    for lost in 0..3 {
        let after = sim.power_cut_leaving(&names(Keep::except([lost])));
        let left: Vec<_> =
            unsynced.iter().filter(|call| after.content(&call.path).is_some()).collect();
        assert_eq!(left.len(), 2);
        assert!(after.content(&unsynced[lost].path).is_none());
    }
    sim.sync_dir(Path::new("/")).expect("synced");
    assert!(sim.unsynced_names().is_empty());
}

#[test]
fn a_later_write_can_survive_an_earlier_one() {
    let sim = SimFs::new(0);
    let path = Path::new("/file");
    let file = durable_file(&sim, path, b"....");
    write_all_at(&*file, b"aa", 0).expect("written");
    write_all_at(&*file, b"bb", 1).expect("written");
    file.set_len(2).expect("cut");
    let found = |keep| sim.power_cut_leaving(&writes(keep)).content(path).expect("there");
    let expected: [&[u8]; 8] = [b"....", b"aa..", b".bb.", b"abb.", b"..", b"aa", b".b", b"ab"];
    for (bits, expected) in (0..).zip(expected) {
        assert_eq!(found(Keep::subset(bits)), expected, "{bits:03b}");
    }
    assert_eq!(sim.unsynced_writes().len(), 3);
    file.sync_all().expect("synced");
    assert!(sim.unsynced_writes().is_empty());
}

#[test]
fn every_subset_of_dirty_pages_can_be_chosen() {
    let sim = SimFs::new(0);
    let path = Path::new("/file");
    let file = durable_file(&sim, path, &[0; 2048]);
    write_all_at(&*file, &[1; 1024], 700).expect("written");
    let pages = sim.unsynced_pages(512);
    let starts: Vec<_> = pages.iter().map(|page| (page.path.as_deref(), page.start)).collect();
    assert_eq!(starts, [512, 1024, 1536].map(|start| (Some(path), start)));
    for bits in 0..8_u64 {
        let content = Content::Pages { granularity: 512, keep: Keep::subset(bits) };
        let after = sim.power_cut_leaving(&Survivors { names: Keep::All, content });
        let found = after.content(path).expect("there");
        for (page, start) in [(0, 700), (1, 1024), (2, 1536)] {
            assert_eq!(found[start] == 1, bits >> page & 1 == 1, "{bits:03b}");
        }
    }
}

#[test]
fn a_full_disk_can_be_freed_again() {
    let sim = SimFs::new(0);
    let file = durable_file(&sim, Path::new("/file"), b"");
    let full = When::From(sim.calls() + 2, |call| call.op == FsOp::Write);
    sim.fail(Fault { when: full, errno: ENOSPC, repeat: Repeat::Times(2) });
    write_all_at(&*file, b"a", 0).expect("not yet");
    for _ in 0..2 {
        let error = write_all_at(&*file, b"b", 1).expect_err("full");
        assert!(error.is_full());
    }
    write_all_at(&*file, b"b", 1).expect("freed");
}

#[test]
fn a_story_tells_how_to_repeat_a_crash_and_what_was_not_synced() {
    let sim = SimFs::new(9);
    let file = durable_file(&sim, Path::new("/file"), b"old");
    sim.crash_before(sim.calls() + 3);
    write_all_at(&*file, b"new", 0).expect("written");
    sim.rename(Path::new("/file"), Path::new("/name")).expect("renamed");
    file.sync_data().expect_err("crashed");
    let story = sim.story();
    let expected = [
        "repeat with SimFs::new(9), crash_before(7); 7 calls in all, since the last barrier:",
        "  #5 write /file, 3 bytes at 0  (not synced)",
        "  #6 rename /file  (name not synced)",
        "  #7 fdatasync /file",
    ];
    assert_eq!(story.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn rows_on_a_disk_are_written_before_a_crash_or_not_at_all() {
    use sharestate::snapshot::{Family, MemoryRows, RowOp, RowReader, RowStore};
    for after in [false, true] {
        let sim = SimFs::new(0);
        let rows = MemoryRows::on(&sim);
        let put = |key: &[u8]| vec![RowOp::put(Family::Meta, key.to_vec(), b"value".to_vec())];
        rows.write(put(b"a")).expect("written");
        if after {
            sim.crash_after(2);
        } else {
            sim.crash_before(2);
        }
        rows.write(put(b"b")).expect_err("the power failed");
        rows.get(Family::Meta, b"a").expect_err("the power failed");
        let sim = sim.power_cut(LOST);
        let rows = rows.fork_on(&sim);
        assert!(rows.get(Family::Meta, b"a").expect("read").is_some(), "a batch is durable");
        assert_eq!(rows.get(Family::Meta, b"b").expect("read").is_some(), after);
        let kinds: Vec<_> = sim.trace().iter().map(|call| call.op).collect();
        assert_eq!(kinds, [FsOp::ReadRows; 2]);
    }
}
