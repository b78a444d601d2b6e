package sharestate;

import java.util.List;

/**
 * The whole state of a share partition.
 *
 * @param stateEpoch            state epoch
 * @param leaderEpoch           leader epoch
 * @param startOffset           start offset, -1 while not known
 * @param deliveryCompleteCount terminal records at or after the start offset, -1 when unknown
 * @param batches               sorted, disjoint runs
 * @param pending               staged acknowledgements, sorted and disjoint, laid over the batches
 */
public record PartitionState(int stateEpoch, int leaderEpoch, long startOffset, int deliveryCompleteCount,
                             List<StateBatch> batches, List<PendingAck> pending) {
}
