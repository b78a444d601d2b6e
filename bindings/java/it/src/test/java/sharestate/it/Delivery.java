package sharestate.it;

import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * One delivery of a record.
 *
 * @param partition partition
 * @param offset    offset
 * @param count     delivery count that the broker told
 */
record Delivery(int partition, long offset, int count) implements Comparable<Delivery> {
    static Delivery of(ConsumerRecord<String, String> record) {
        return new Delivery(record.partition(), record.offset(), record.deliveryCount().orElseThrow());
    }

    @Override
    public int compareTo(Delivery other) {
        int byPartition = Integer.compare(partition, other.partition);
        return byPartition != 0 ? byPartition : Long.compare(offset, other.offset);
    }

    @Override
    public String toString() {
        return partition + ":" + offset + "x" + count;
    }
}
