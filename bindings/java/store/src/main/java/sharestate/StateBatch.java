package sharestate;

/**
 * A run of offsets in one state.
 *
 * @param firstOffset   first offset, inclusive
 * @param lastOffset    last offset, inclusive
 * @param deliveryState Kafka's number: 0 available, 2 acknowledged, 3 archiving, 4 archived
 * @param deliveryCount how often the records were acquired
 */
public record StateBatch(long firstOffset, long lastOffset, byte deliveryState, short deliveryCount) {
}
