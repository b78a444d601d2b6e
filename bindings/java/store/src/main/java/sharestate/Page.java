package sharestate;

import java.util.List;

/**
 * Some share partitions in key order.
 *
 * @param rows share partitions
 * @param more whether there may be more behind the last one
 */
public record Page(List<Row> rows, boolean more) {
    /**
     * One share partition.
     *
     * @param key   its key
     * @param state its state
     */
    public record Row(SharePartitionKey key, PartitionState state) {
    }
}
