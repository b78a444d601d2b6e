package sharestate;

/**
 * How far a walk over a group or topic came.
 *
 * @param partitions share partitions that were deleted
 * @param dropped    ranges of pending acks that went with them
 */
public record Deleted(long partitions, long dropped) {
}
