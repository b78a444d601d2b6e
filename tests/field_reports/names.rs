//! Files with almost the right name (nats-server 8101).

use std::path::Path;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::disk::{Disk, log_only};
use crate::support::{batch, contents, key, write};

#[test]
fn files_with_almost_the_right_name_are_never_taken_for_ours_and_left_alone() {
    let disk = Disk::new();
    let store = disk.open(&log_only());
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    store.blocking().write(&key("g", 0), write(&[batch(0, 3, 2, 1)])).expect("write");
    let before = contents(&store);
    drop(store);
    let segment = disk.fs.content(Path::new("/s/wal/00000000000000000001.wal")).expect("segment");
    // Twenty digits are a segment's name and no other text is.
    let stranger = proptest::string::string_regex(
        "([0-9]{1,19}|[0-9]{21,24}|[ +-]?0{18}[0-9]|0{19}[a-f])\\.wal|0{19}2\\.(wal~|WAL|wal\\.tmp)|\
         \\.0{19}2\\.wal|[A-Z]{1,9}(\\.tmp|~|\\.old)?|[a-z]{1,12}",
    )
    .expect("a regular expression")
    .prop_filter("not one of ours", |name| {
        !["STORE", "LOCK", "CREATING", "RESERVE", "STORE.tmp", "CREATING.tmp", "RESERVE.tmp"]
            .contains(&name.as_str())
            && !["wal", "snapshot", "quarantine"].contains(&name.as_str())
    });
    let mut runner = TestRunner::deterministic();
    let (mut names, mut tried) = (0, 0);
    while tried < 100_000 {
        let image = disk.after_power_cut();
        let mut strangers = Vec::new();
        for n in 0..400 {
            let name = stranger.new_tree(&mut runner).expect("generated").current();
            let dir = if n % 2 == 0 { "/s/wal" } else { "/s" };
            let path = Path::new(dir).join(name);
            // Its content is a segment's, so that reading it would be noticed.
            image.fs.set_content(&path, &segment);
            strangers.push(path);
        }
        tried += strangers.len();
        strangers.sort();
        strangers.dedup();
        names += strangers.len();
        let store = image.open(&log_only());
        assert_eq!(contents(&store), before);
        drop(store);
        for path in strangers {
            assert_eq!(image.fs.content(&path).as_deref(), Some(&segment[..]), "{path:?}");
        }
    }
    println!("strange-names={names}");
}
