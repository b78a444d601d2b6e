package sharestate;

/**
 * Offsets in a row.
 *
 * @param first first offset, inclusive
 * @param last  last offset, inclusive
 */
public record OffsetRange(long first, long last) {
}
