package sharestate;

/**
 * A staged acknowledgement that waits for its transaction's marker.
 *
 * @param firstOffset     first offset, inclusive
 * @param lastOffset      last offset, inclusive
 * @param ackType         what was staged
 * @param commitTarget    state after a commit
 * @param abortTarget     state after an abort
 * @param deliveryCount   delivery count when it was staged
 * @param producerId      producer id
 * @param producerEpoch   producer epoch
 * @param twoPhase        part of an external two-phase commit
 * @param transactionalId transactional id
 * @param memberId        share consumer
 * @param memberEpoch     its epoch
 */
public record PendingAck(long firstOffset, long lastOffset, AckType ackType, byte commitTarget, byte abortTarget,
                         short deliveryCount, long producerId, short producerEpoch, boolean twoPhase,
                         String transactionalId, String memberId, int memberEpoch) {
}
