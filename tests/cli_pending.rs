//! `pending`, `producers` and `resolve`: what is prepared, by whom, and how an operator ends it.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod cli;

use std::path::Path;

use serde_json::{Value, json};
use sharestate::{Outcome, PendingFilter};
use tempfile::TempDir;
use uuid::Uuid;

use cli::transactions::{DAY, SECOND, fill, filled, key, marker};
use cli::{assert_untouched, json_lines, run, tree};

/// Producer id and epoch of an entry.
type Owner = (i64, i64);

/// Who owns the entries, and the totals.
fn listed(path: &Path, filters: &[&str]) -> (Vec<Owner>, Value) {
    let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"pending", &path, &"--json"];
    args.extend(filters.iter().map(|filter| filter as &dyn AsRef<std::ffi::OsStr>));
    let mut lines = json_lines(&run(&args).expect(0));
    let totals = lines.pop().unwrap()["totals"].take();
    let id = |line: &Value| {
        (line["producer_id"].as_i64().unwrap(), line["producer_epoch"].as_i64().unwrap())
    };
    (lines.iter().map(id).collect(), totals)
}

#[test]
fn pending_lists_every_fact_oldest_first() {
    let (_dir, path) = filled();
    let before = tree(&path);
    let lines = json_lines(&run(&[&"pending", &path, &"--json"]).expect(0));
    assert_eq!(lines.len(), 5);
    let first = &lines[0];
    let range = |first: i64, last: i64| {
        json!({
            "first_offset": first, "last_offset": last, "ack_type": "accept", "commit_target": 2,
            "abort_target": 0, "delivery_count": 1, "lsn": 5,
            "stage_time_ms": lines[0]["stage_time_ms"],
        })
    };
    let expected = json!({
        "age_ms": first["age_ms"], "stage_time_ms": first["stage_time_ms"],
        "producer_id": 9, "producer_epoch": 0, "two_phase": true, "orphaned": false,
        "transactional_id": "2pc-audit", "member_id": "member of 2pc-audit", "member_epoch": 3,
        "coordinator_epoch": null, "key": key("orders", 1, 0).to_string(), "start_offset": 10,
        "holds_start_offset": true, "lsn": 5, "offsets": 11,
        "ranges": [range(10, 19), range(30, 30)],
    });
    assert_eq!(*first, expected);
    assert!((2 * DAY..2 * DAY + 600 * SECOND).contains(&first["age_ms"].as_i64().unwrap()));
    let (orphan, many) = (&lines[1], &lines[2]);
    assert_eq!((&orphan["orphaned"], &orphan["coordinator_epoch"]), (&true.into(), &8.into()));
    assert_eq!(many["ranges"].as_array().unwrap().len(), 5);
    let holders = lines[..4].iter().filter(|line| line["holds_start_offset"] == true);
    assert_eq!(holders.count(), 1);
    let totals = &lines[4]["totals"];
    let expected = json!({
        "producers": 3, "orphaned_epochs": 1, "entries": 4, "ranges": 9, "offsets": 23,
        "held_start_offsets": 1, "oldest_ms": first["stage_time_ms"],
    });
    assert_eq!(*totals, expected);
    assert_untouched(&path, &before);
}

#[test]
fn the_table_abbreviates_ranges_and_marks_the_holder_of_a_start_offset() {
    let (_dir, path) = filled();
    let text = run(&[&"pending", &path]).expect(0);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    let words: Vec<_> = lines[0].split("  ").filter(|word| !word.is_empty()).collect();
    assert_eq!((words.len(), words[0].trim(), words[10].trim()), (11, "AGE", "RANGES"), "{text}");
    assert!(lines[1].starts_with("2d ") && lines[1].contains(" 10*    10-19:accept"), "{text}");
    assert!(lines[3].ends_with(" 10     11-11:accept 13-13:accept 15-15:accept and 2 more"));
    assert_eq!(text.matches('*').count(), 2, "{text}");
    assert!(lines[2].contains("  5         3      no   yes "), "{text}");
    let last = "23 prepared acks in 9 ranges of 3 producers (1 epoch orphaned), 1 start offset \
                held (*), oldest 2d";
    assert!(lines[5].starts_with(last), "{text}");
    // Columns line up.
    let at = lines[0].find("RANGES").unwrap();
    assert!(lines[1..5].iter().all(|line| line[..at].ends_with("  ")), "{text}");
    let none = run(&[&"pending", &path, &"--producer-id", &"12345"]).expect(0);
    assert_eq!(
        none,
        "0 prepared acks in 0 ranges of 0 producers (0 epochs orphaned), 0 start offsets held (*)\n"
    );
}

#[test]
fn filters_select_and_all_of_them_must_match() {
    let (_dir, path) = filled();
    let all = vec![(9, 0), (5, 3), (7, 2), (5, 4)];
    let topic = Uuid::from_u128(1).to_string();
    let cases: Vec<(Vec<&str>, Vec<Owner>)> = vec![
        (vec![], all.clone()),
        (vec!["--older-than", "1m"], all.clone()),
        (vec!["--older-than", "30m"], vec![(9, 0), (5, 3), (7, 2)]),
        (vec!["--older-than", "2h"], vec![(9, 0), (5, 3)]),
        (vec!["--older-than", "1d"], vec![(9, 0), (5, 3)]),
        (vec!["--older-than", "47h"], vec![(9, 0)]),
        (vec!["--older-than", "3d"], vec![]),
        (vec!["--producer-id", "5"], vec![(5, 3), (5, 4)]),
        (vec!["--producer-id", "6"], vec![]),
        (vec!["--transactional-id-prefix", "till"], vec![(5, 3), (7, 2), (5, 4)]),
        (vec!["--transactional-id-prefix", "till-7"], vec![(7, 2)]),
        (vec!["--transactional-id-prefix", ""], all),
        (vec!["--group", "orders"], vec![(9, 0), (5, 3), (5, 4)]),
        (vec!["--group", "order"], vec![]),
        (vec!["--topic", &topic], vec![(9, 0), (7, 2), (5, 4)]),
        (vec!["--orphaned"], vec![(5, 3)]),
        (vec!["--topic", &topic, "--group", "orders", "--older-than", "1h"], vec![(9, 0)]),
        (vec!["--orphaned", "--producer-id", "7"], vec![]),
    ];
    for (filters, expected) in cases {
        let (found, totals) = listed(&path, &filters);
        assert_eq!(found, expected, "{filters:?}");
        assert_eq!(totals["entries"], expected.len(), "{filters:?}");
        assert_eq!(totals["oldest_ms"].is_null(), expected.is_empty(), "{filters:?}");
    }
    for (option, value) in [("--older-than", "5"), ("--topic", "one"), ("--producer-id", "x")] {
        assert_eq!(run(&[&"pending", &path, &option, &value]).code, Some(2), "{option}");
    }
}

#[test]
fn producers_shows_what_is_remembered() {
    let (_dir, path) = filled();
    let before = tree(&path);
    let lines = json_lines(&run(&[&"producers", &path, &"--json"]).expect(0));
    let ids: Vec<_> = lines.iter().map(|line| line["producer_id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [5, 7, 9, 77]);
    let (b, a) = (key("orders", 2, 0).to_string(), key("orders", 1, 0).to_string());
    let expected = json!({
        "producer_id": 5, "highest_stage_epoch": 4,
        "last_completed": {"epoch": 2, "outcome": "commit", "operator": false},
        "coordinator_epoch": 8,
        "open": [
            {"epoch": 3, "two_phase": false, "superseded_by": 4, "orphaned": true,
             "partitions": [b]},
            {"epoch": 4, "two_phase": false, "superseded_by": null, "orphaned": false,
             "partitions": [a]},
        ],
        "last_used_ms": lines[0]["last_used_ms"], "last_lsn": 8,
    });
    assert_eq!(lines[0], expected);
    let expected = json!({
        "producer_id": 77, "highest_stage_epoch": null,
        "last_completed": {"epoch": 6, "outcome": "abort", "operator": false},
        "coordinator_epoch": 2, "open": [], "last_used_ms": lines[3]["last_used_ms"],
        "last_lsn": 9,
    });
    assert_eq!(lines[3], expected, "nothing pending, and remembered all the same");
    let text = run(&[&"producers", &path]).expect(0);
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(
        text.contains("3 (1 share partition, superseded by 4, orphaned), 4 (1 share partition)")
            && text.contains("0 (1 share partition, 2PC)")
            && text.contains("6 abort")
            && text.ends_with("4 producers, 4 open epochs\n"),
        "{text}"
    );
    assert_untouched(&path, &before);
}

#[test]
fn resolve_ends_an_orphan_as_an_operators_act() {
    let (_dir, path) = filled();
    let args: &[&str] = &["--producer-id", "5", "--epoch", "3"];
    let resolve = |more: &[&str]| {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"resolve", &path];
        all.extend(args.iter().chain(more).map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        run(&all)
    };
    let before = tree(&path);
    // Without a terminal nobody can be asked.
    let error = resolve(&["--commit"]).expect_error(2);
    assert!(error.contains("no terminal") && error.contains("--yes"), "{error}");
    // One outcome, neither none nor both.
    for outcome in [&["--yes"][..], &["--yes", "--commit", "--abort"]] {
        assert_eq!(resolve(outcome).code, Some(2));
    }
    assert_untouched(&path, &before);

    let text = resolve(&["--commit", "--yes"]).expect(0);
    let b = key("orders", 2, 0);
    assert!(text.contains("till-5") && text.contains("20-21:accept"), "what will be: {text}");
    assert!(text.contains(&format!("resolved {b}: 20-21\n")), "{text}");
    let last = "2 prepared acks of producer 5 epoch 3 in 1 share partition committed by operator\n";
    assert!(text.ends_with(last), "{text}");
    assert_eq!(listed(&path, &[]).0, [(9, 0), (7, 2), (5, 4)]);

    let error = resolve(&["--commit", "--yes"]).expect_error(2);
    assert!(error.contains("producer 5 has nothing pending at epoch 3"), "{error}");

    let dumped = json_lines(&run(&[&"dump", &path, &"--json"]).expect(0));
    let entry = dumped.iter().find(|line| line["kind"] == "force-resolve").unwrap();
    let facts =
        ["producer_id", "epoch", "outcome", "completes", "operator"].map(|name| &entry[name]);
    assert_eq!(facts, [&json!(5), &json!(3), &json!("commit"), &json!(4), &json!(true)]);
    let text = run(&[&"dump", &path]).expect(0);
    assert!(
        text.contains(
            " force-resolve producer=5/3 outcome=commit by=operator completes=4 time_ms="
        ),
        "{text}"
    );
    let producers = json_lines(&run(&[&"producers", &path, &"--json"]).expect(0));
    let last = &producers[0]["last_completed"];
    assert_eq!(*last, json!({"epoch": 4, "outcome": "commit", "operator": true}));
    let text = run(&[&"producers", &path]).expect(0);
    assert!(text.contains("4 commit by operator"), "{text}");
    let shown = run(&[&"show", &path, &b.to_string(), &"--json"]).expect(0);
    assert_eq!(cli::json(&shown)["batches"], json!([[20, 21, 2, 1]]));
    run(&[&"verify", &path]).expect(0);
}

#[test]
fn resolve_answers_in_json_and_keeps_other_epochs() {
    let (_dir, path) = filled();
    let ask = |epoch: &str, outcome: &str| {
        let args: [&dyn AsRef<std::ffi::OsStr>; 9] = [
            &"resolve",
            &path,
            &"--producer-id",
            &"5",
            &"--epoch",
            &epoch,
            &outcome,
            &"--yes",
            &"--json",
        ];
        run(&args)
    };
    let answer = cli::json(&ask("4", "--abort").expect(0));
    let a = key("orders", 1, 0).to_string();
    let expected = json!({
        "producer_id": 5, "epoch": 4, "outcome": "abort", "offsets": 5, "orphans": true,
        "partitions": [{"key": a, "ranges": [[40, 44]]}],
    });
    assert_eq!(answer, expected);
    let answer = cli::json(&ask("3", "--abort").expect(0));
    assert_eq!((&answer["offsets"], &answer["orphans"]), (&2.into(), &false.into()));
    for epoch in ["3", "4", "9", "-1"] {
        let error = ask(epoch, "--abort").expect_error(2);
        assert!(error.contains(&format!("nothing pending at epoch {epoch}")), "{error}");
    }
    assert_eq!(ask("40000", "--abort").code, Some(2), "no such epoch");
}

#[test]
fn resolve_makes_no_store_and_waits_for_no_lock() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store");
    let resolve = |path: &Path| {
        run(&[&"resolve", &path, &"--producer-id", &"5", &"--epoch", &"3", &"--abort", &"--yes"])
    };
    let error = resolve(&path).expect_error(2);
    assert!(error.contains(&path.display().to_string()), "{error}");
    assert!(!path.exists());

    // Pending and producers work beside the store that is open.
    let store = fill(&path);
    let error = resolve(&path).expect_error(2);
    assert!(error.contains("in use"), "{error}");
    assert_eq!(listed(&path, &[]).0, [(9, 0), (5, 3), (7, 2), (5, 4)]);
    assert_eq!(run(&[&"producers", &path, &"--json"]).expect(0).lines().count(), 4);
    let blocking = store.blocking();
    blocking.marker(marker(9, 1, 0, Outcome::Commit)).unwrap();
    assert_eq!(listed(&path, &[]).0, [(5, 3), (7, 2), (5, 4)]);
    let pending = blocking.pending(PendingFilter::default()).unwrap();
    assert_eq!(pending.len(), 3, "the store and its onlooker agree");
    blocking.close().unwrap();
}

#[test]
fn help_says_why_kafkas_tool_does_not_help() {
    let help = run(&[&"resolve", &"--help"]).expect(0);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Under transaction version 2 Kafka's own abort tool"), "{help}");
    assert!(words.contains("dependable way"), "{help}");
}
