package sharestate;

import java.util.List;
import java.util.Map;

/**
 * What a marker resolved.
 *
 * @param partitions  resolved offsets by share partition, in key order
 * @param contradicts it repeats a marker with another outcome than the one remembered
 * @param orphans     an open epoch below it stays behind
 */
public record Resolved(Map<SharePartitionKey, List<OffsetRange>> partitions, boolean contradicts, boolean orphans) {
}
