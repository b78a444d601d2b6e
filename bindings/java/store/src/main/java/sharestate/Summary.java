package sharestate;

/**
 * Epochs, start offset and count of a share partition; 0, 0, -1 and -1 when it is not initialised.
 *
 * @param stateEpoch            state epoch
 * @param leaderEpoch           leader epoch
 * @param startOffset           start offset, -1 while not known
 * @param deliveryCompleteCount terminal records at or after the start offset, -1 when unknown
 */
public record Summary(int stateEpoch, int leaderEpoch, long startOffset, int deliveryCompleteCount) {
}
