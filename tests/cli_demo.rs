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
    // Transactions were cut off between stage and marker, and ended by the parent.
    let sum = |name: &str| lines[..6].iter().map(|round| round[name].as_u64().unwrap()).sum();
    let (staged, recovered): (u64, u64) = (sum("staged"), sum("pending_recovered"));
    assert_eq!(
        (&total["staged"], &total["pending_recovered"]),
        (&staged.into(), &recovered.into())
    );
    assert_eq!((&total["resolved"], &total["wrong"]), (&recovered.into(), &0.into()));
    assert!(recovered > 0 && staged > recovered, "{staged} staged, {recovered} recovered");
    assert_eq!(cli::json(&run(&[&"pending", &store, &"--json"]).expect(0))["totals"]["entries"], 0);
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
fn a_lost_stage_and_a_lost_marker_are_found() {
    for tamper in ["lost-stage", "lost-marker"] {
        let answer =
            run(&[&"demo", &"--rounds", &"2", &"--seed", &"5", &"--json", &"--tamper", &tamper]);
        assert!(!answer.err.is_empty(), "what differs is said");
        let err = answer.err.clone();
        let total = json_lines(&answer.expect(1)).pop().unwrap();
        assert_eq!(total["invented"], 0, "{total}\n{err}");
        let count = |name: &str| total[name].as_u64().unwrap();
        if tamper == "lost-stage" {
            assert!(count("lost") > 0 && count("wrong") == 0, "{total}\n{err}");
            assert_eq!(count("resolved"), count("pending_recovered"), "{total}");
        } else {
            assert!(count("lost") == 0 && count("wrong") > 0, "{total}\n{err}");
            assert!(count("resolved") < count("pending_recovered"), "{total}");
        }
        let dir = total["dir"].as_str().expect("the evidence is kept");
        std::fs::remove_dir_all(std::path::Path::new(dir).parent().unwrap()).unwrap();
    }
}

#[test]
fn one_consumer_with_many_share_partitions_and_many_with_few_are_fine() {
    for (consumers, partitions) in [("1", "200"), ("64", "3")] {
        let args: [&dyn AsRef<std::ffi::OsStr>; 10] = [
            &"demo",
            &"--rounds",
            &"3",
            &"--seed",
            &"8",
            &"--json",
            &"--consumers",
            &consumers,
            &"--partitions",
            &partitions,
        ];
        let total = json_lines(&run(&args).expect(0)).pop().unwrap();
        assert_eq!(total["resolved"], total["pending_recovered"], "{total}");
    }
}

#[test]
fn the_demo_says_in_words_what_it_does_and_cleans_up() {
    let out = run(&[&"demo", &"--rounds", &"2", &"--seed", &"3"]).expect(0);
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.lines().nth(1).unwrap().starts_with("round 1: killed after "), "{out}");
    assert!(out.contains("prepared acks survived") && out.contains("survived prepared"), "{out}");
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
