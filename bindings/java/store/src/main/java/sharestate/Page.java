package sharestate;

import java.util.List;

/**
 * Some share partitions in key order.
 *
 * @param keys share partitions
 * @param more whether there may be more behind the last one
 */
public record Page(List<SharePartitionKey> keys, boolean more) {
}
