package sharestate;

import java.util.List;
import java.util.Objects;

/**
 * Acknowledgements that become part of a producer's transaction.
 *
 * @param key                share partition
 * @param stateEpoch         state epoch that the leader knows
 * @param leaderEpoch        leader epoch
 * @param producerId         producer id
 * @param producerEpoch      producer epoch
 * @param twoPhase           part of an external two-phase commit (KIP-939); false where unknown
 * @param transactionVersion transaction version; below 2 is refused
 * @param transactionalId    transactional id, for operators
 * @param memberId           share consumer, for operators
 * @param memberEpoch        its epoch
 * @param acks               what to stage, all or nothing
 */
public record Stage(SharePartitionKey key, int stateEpoch, int leaderEpoch, long producerId, short producerEpoch,
                    boolean twoPhase, byte transactionVersion, String transactionalId, String memberId,
                    int memberEpoch, List<AckRange> acks) {
    /** Refuses null and keeps a copy of the list. */
    public Stage {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(transactionalId, "transactionalId");
        Objects.requireNonNull(memberId, "memberId");
        acks = List.copyOf(acks);
    }
}
