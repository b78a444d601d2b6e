//! Damage of one row is one share partition's matter (nats-server 7691, KAFKA-17442).

use sharestate::snapshot::{Family, RowOp, RowReader, RowStore};
use sharestate::{ErrorClass, Outcome};

use crate::disk::{Disk, log_only, marker, stage};
use crate::support::{batch, key, write};

#[test]
fn a_row_that_does_not_decode_is_the_matter_of_its_own_share_partition() {
    let disk = Disk::new();
    let store = disk.open(&log_only());
    for partition in 0..3 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    store.blocking().checkpoint().expect("checkpoint");
    drop(store);
    let rows = disk.rows.scan(Family::Partition, &[], 10).expect("rows");
    let (damaged, _) = &rows[1];
    disk.rows
        .write(vec![RowOp::put(Family::Partition, damaged.to_vec(), vec![0; 40])])
        .expect("written");

    let store = disk.open(&log_only());
    let blocking = store.blocking();
    let error = blocking.read(&key("g", 1), 0).expect_err("damaged");
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
    assert!(error.to_string().contains("g:"), "the row is named: {error}");
    let error = blocking.write(&key("g", 1), write(&[batch(0, 0, 2, 1)])).expect_err("damaged");
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
    // The others read, write, stage and resolve as ever.
    for partition in [0, 2] {
        blocking.write(&key("g", partition), write(&[batch(0, 3, 2, 1)])).expect("write");
    }
    blocking.stage(stage(7, 0, 9)).expect("stage");
    blocking.marker(marker(7, 0, Outcome::Commit)).expect("marker");
    blocking.checkpoint().expect("checkpoint");
    drop((blocking, store));
    // And nothing has thrown the evidence away.
    let kept = disk.rows.get(Family::Partition, damaged).expect("read");
    assert_eq!(kept, Some(vec![0; 40]));
    let reopened = disk.after_power_cut().open(&log_only());
    let row = reopened.blocking().read(&key("g", 0), 0).expect("read").partition;
    assert_eq!(row.batches, [batch(0, 3, 2, 1), batch(9, 9, 2, 1)]);
}
