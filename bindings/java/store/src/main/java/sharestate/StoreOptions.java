package sharestate;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * How a store is opened. A new object has the store's own defaults, which suit a broker; the setters answer
 * the object itself. Not for use by several threads at a time.
 */
public final class StoreOptions {
    /** Whether a store may, must or must not be made anew. */
    public enum Create {
        /** Open an existing store; make one in an empty or missing directory. */
        IF_MISSING,
        /** Open an existing store or fail. */
        NEVER,
        /** Make a new store or fail. */
        NEW
    }

    private static final long DEFAULT = -1;
    private static final long SYNC_ALWAYS = 0;
    private static final long SYNC_NEVER = -1;

    private Create create = Create.IF_MISSING;
    private long syncMillis = SYNC_ALWAYS;
    private long segmentBytes = DEFAULT;
    private long queueBytes = DEFAULT;
    private long memoryBytes = DEFAULT;
    private long cacheBytes = DEFAULT;
    private long blockCacheBytes = DEFAULT;
    private long checkpointMillis = DEFAULT;
    private long producerExpirationMillis = DEFAULT;
    private long reserveBytes = DEFAULT;

    /** Whether a store may be made. Default: if it is missing. */
    public StoreOptions create(Create how) {
        create = Objects.requireNonNull(how, "how");
        return this;
    }

    /** Answers are given after fdatasync: no crash takes an answered change back. The default. */
    public StoreOptions syncAlways() {
        syncMillis = SYNC_ALWAYS;
        return this;
    }

    /** Answers are given after the write; synced at least this often. A power cut may take changes back. */
    public StoreOptions syncEvery(Duration interval) {
        syncMillis = positive("sync interval", interval.toMillis());
        return this;
    }

    /** Answers are given after the write; synced at checkpoints, rollovers and close only. */
    public StoreOptions syncNever() {
        syncMillis = SYNC_NEVER;
        return this;
    }

    /** Size of a log segment of a new store. */
    public StoreOptions segmentBytes(long bytes) {
        segmentBytes = positive("segment bytes", bytes);
        return this;
    }

    /** Bound of all calls that are not answered yet; above it callers' requests wait. */
    public StoreOptions queueBytes(long bytes) {
        queueBytes = positive("queue bytes", bytes);
        return this;
    }

    /** Hard bound of changed rows in memory. */
    public StoreOptions memoryBytes(long bytes) {
        memoryBytes = positive("memory bytes", bytes);
        return this;
    }

    /** Bound of cached unchanged rows. */
    public StoreOptions cacheBytes(long bytes) {
        cacheBytes = positive("cache bytes", bytes);
        return this;
    }

    /** Bound of RocksDB's block cache. */
    public StoreOptions blockCacheBytes(long bytes) {
        blockCacheBytes = positive("block cache bytes", bytes);
        return this;
    }

    /** A checkpoint is taken when changes are this old. */
    public StoreOptions checkpointInterval(Duration interval) {
        checkpointMillis = positive("checkpoint interval", interval.toMillis());
        return this;
    }

    /** How long an idle producer is remembered. */
    public StoreOptions producerIdExpiration(Duration expiration) {
        producerExpirationMillis = positive("producer id expiration", expiration.toMillis());
        return this;
    }

    /** Disk space kept back for a full disk. */
    public StoreOptions reserveBytes(long bytes) {
        reserveBytes = positive("reserve bytes", bytes);
        return this;
    }

    /** Directory and settings as the native library reads them. */
    byte[] encode(Path directory) {
        return new Request().text(directory.toString()).i8(create.ordinal()).i64(syncMillis)
                .i64(segmentBytes).i64(queueBytes).i64(memoryBytes).i64(cacheBytes).i64(blockCacheBytes)
                .i64(checkpointMillis).i64(producerExpirationMillis).i64(reserveBytes).bytes();
    }

    private static long positive(String what, long value) {
        if (value <= 0) {
            throw new IllegalArgumentException(what + ": " + value + " is not above zero");
        }
        return value;
    }
}
