package sharestate;

/**
 * The end of a transaction, as the transaction coordinator writes it.
 *
 * @param producerId         producer id
 * @param producerEpoch      producer epoch; under transaction version 2 one above that of the acks
 * @param coordinatorEpoch   epoch of the transaction coordinator
 * @param committed          whether it is a commit
 * @param transactionVersion transaction version, 0 where it is not carried
 */
public record Marker(long producerId, short producerEpoch, int coordinatorEpoch, boolean committed,
                     byte transactionVersion) {
}
