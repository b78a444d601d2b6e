package sharestate;

import java.time.Duration;

/**
 * What opening a store found and did.
 *
 * @param created        the store was made by this call
 * @param snapshotLsn    every entry up to this one was in the snapshot
 * @param replayed       entries replayed from the log on top of it
 * @param lastLsn        last entry of the log
 * @param incarnation    which opening this is
 * @param elapsed        how long it took
 * @param snapshotDamage damage of the snapshot that the replay healed; empty if none
 * @param tornTail       the torn tail that was cut off the log; empty if none
 */
public record RecoveryReport(boolean created, long snapshotLsn, long replayed, long lastLsn, long incarnation,
                             Duration elapsed, String snapshotDamage, String tornTail) {
}
