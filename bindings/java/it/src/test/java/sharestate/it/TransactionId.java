package sharestate.it;

/**
 * Who a transaction is of.
 *
 * @param transactionalId transactional id
 * @param producerId      producer id
 * @param epoch           producer epoch
 */
record TransactionId(String transactionalId, long producerId, short epoch) {
}
