package sharestate.it;

/**
 * An end of a transaction as the coordinator wrote it.
 *
 * @param producerId       producer id
 * @param producerEpoch    producer epoch that the control batch carries
 * @param coordinatorEpoch epoch of the transaction coordinator
 * @param committed        whether it is a commit
 */
record TransactionMarker(long producerId, short producerEpoch, int coordinatorEpoch, boolean committed) {
}
