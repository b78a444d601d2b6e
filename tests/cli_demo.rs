//! The demo: a store is killed again and again and loses nothing; and what is lost or invented on
//! purpose does not go unnoticed.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod cli;

use cli::{json_lines, run};
use tempfile::TempDir;

#[test]
fn a_killed_store_loses_and_invents_nothing() {
    let dir = TempDir::new().unwrap();
    let store = dir.path().join("store");
    let out =
        run(&[&"demo", &"--rounds", &"6", &"--seed", &"11", &"--json", &"--dir", &store]).expect(0);
    let lines = json_lines(&out);
    assert_eq!(lines.len(), 7, "a line per round and one for all");
    let total = &lines[6];
    assert_eq!((&total["rounds"], &total["seed"]), (&6.into(), &11.into()));
    assert_eq!((&total["lost"], &total["invented"]), (&0.into(), &0.into()));
    assert_eq!((&total["wrong_answers"], &total["verdict"]), (&0.into(), &"clean".into()));
    let acknowledged: i64 =
        lines[..6].iter().map(|round| round["acknowledged"].as_i64().unwrap()).sum();
    assert_eq!(total["acknowledged"], acknowledged);
    assert!(acknowledged > 100, "{acknowledged}");
    run(&[&"verify", &store]).expect(0);
}

#[test]
fn what_is_lost_or_invented_on_purpose_is_found() {
    for (tamper, other) in [("lost", "invented"), ("invented", "lost")] {
        let dir = TempDir::new().unwrap();
        let store = dir.path().join("store");
        let answer = run(&[
            &"demo",
            &"--rounds",
            &"2",
            &"--seed",
            &"5",
            &"--json",
            &"--dir",
            &store,
            &"--tamper",
            &tamper,
        ]);
        assert!(answer.err.contains("found Some"), "{}", answer.err);
        let total = json_lines(&answer.expect(1)).pop().unwrap();
        assert!(total[tamper].as_i64().unwrap() > 0, "{total}");
        assert_eq!(total[other], 0, "{total}");
    }
}

#[test]
fn the_demo_says_in_words_what_it_does_and_cleans_up() {
    let out = run(&[&"demo", &"--rounds", &"2", &"--seed", &"3"]).expect(0);
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.lines().nth(1).unwrap().starts_with("round 1: killed after "), "{out}");
    assert!(out.contains("entries replayed") && out.contains("torn bytes cut"), "{out}");
    let place = out.lines().next().unwrap().split("store in ").nth(1).unwrap();
    assert!(!std::path::Path::new(place).exists(), "{place} is still there");
}

#[test]
fn a_directory_that_is_in_use_is_left_alone() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("precious"), b"data").unwrap();
    let before = cli::tree(dir.path());
    let error = run(&[&"demo", &"--dir", &dir.path()]).expect_error(2);
    assert!(error.contains("is not empty"), "{error}");
    cli::assert_untouched(dir.path(), &before);
}
