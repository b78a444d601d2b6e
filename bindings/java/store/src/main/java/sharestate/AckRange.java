package sharestate;

import java.util.Objects;

/**
 * One range of a {@link Stage}.
 *
 * @param firstOffset   first offset, inclusive
 * @param lastOffset    last offset, inclusive
 * @param ackType       what is acknowledged how
 * @param commitTarget  state after a commit
 * @param abortTarget   state after an abort
 * @param deliveryCount delivery count of the acquired records
 */
public record AckRange(long firstOffset, long lastOffset, AckType ackType, byte commitTarget, byte abortTarget,
                       short deliveryCount) {
    /** Refuses null. */
    public AckRange {
        Objects.requireNonNull(ackType, "ackType");
    }

    /** Accepted records: acknowledged by a commit, available again after an abort. */
    public static AckRange accept(long firstOffset, long lastOffset, short deliveryCount) {
        return new AckRange(firstOffset, lastOffset, AckType.ACCEPT, (byte) 2, (byte) 0, deliveryCount);
    }
}
