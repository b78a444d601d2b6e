package sharestate;

import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/**
 * An open store of share-group state. Safe for any number of threads; calls of one thread are applied in their order.
 *
 * <p>Calls return at once. Their futures are completed when everything that the answer reflects is durable, by a daemon
 * thread of this store or, on failures found early, by the calling thread; they fail with {@link ShareStoreException}.
 * Only {@link #open} and {@link #close} block. Cancelling a future takes nothing back. A call on a closed store fails;
 * nothing that is done with this class can crash the JVM.
 */
public final class ShareStore implements AutoCloseable {
    private final long handle;
    private final Path directory;
    private final String uuid;
    private final RecoveryReport recovery;
    private final Completions completions;

    private ShareStore(Path directory, Response opened) {
        this.directory = directory;
        this.handle = opened.i64();
        this.uuid = opened.text();
        this.recovery = opened.recovery();
        this.completions = new Completions(handle);
    }

    /** Opens the store in a directory, recovering what a crash left; makes one if the options allow it. Blocks. */
    public static ShareStore open(Path directory, StoreOptions options) {
        Path absolute = directory.toAbsolutePath();
        byte[] request = options.encode(absolute);
        Native.load();
        return new ShareStore(absolute, Response.of(Native.open(request)));
    }

    /** The release of this library. */
    public static String version() {
        return NativeLibrary.jarVersion();
    }

    /** The store's directory. */
    public Path directory() {
        return directory;
    }

    /** The store's identity. */
    public String uuid() {
        return uuid;
    }

    /** What opening found and did. */
    public RecoveryReport recovery() {
        return recovery;
    }

    /** Starts a share partition anew; a repeated identical call changes nothing. Answers the pending acks dropped. */
    public CompletableFuture<List<PendingAck>> initialize(SharePartitionKey key, int stateEpoch, long startOffset) {
        Request request = Request.of(Request.Operation.INITIALIZE).key(key).i32(stateEpoch).i64(startOffset);
        return completions.submit(request, Response::pending);
    }

    /** Merges state batches, as a partition leader does after acknowledgements. Answers the pending acks dropped. */
    public CompletableFuture<List<PendingAck>> write(SharePartitionKey key, int stateEpoch, int leaderEpoch,
                                                     long startOffset, int deliveryCompleteCount,
                                                     List<StateBatch> batches) {
        Request request = Request.of(Request.Operation.WRITE).key(key).i32(stateEpoch).i32(leaderEpoch)
                .i64(startOffset).i32(deliveryCompleteCount).batches(batches);
        return completions.submit(request, Response::pending);
    }

    /** Reads the whole state as a partition leader; a higher leader epoch fences older leaders. */
    public CompletableFuture<PartitionState> read(SharePartitionKey key, int leaderEpoch) {
        return completions.submit(Request.of(Request.Operation.READ).key(key).i32(leaderEpoch), Response::partition);
    }

    /** Reads epochs, start offset and count; never changes anything. */
    public CompletableFuture<Summary> summary(SharePartitionKey key) {
        return completions.submit(Request.of(Request.Operation.SUMMARY).key(key), Response::summary);
    }

    /** Drops a share partition; dropping what is not there succeeds. Answers the pending acks dropped. */
    public CompletableFuture<List<PendingAck>> delete(SharePartitionKey key) {
        return completions.submit(Request.of(Request.Operation.DELETE).key(key), Response::pending);
    }

    /** Deletes all share partitions of a group, one by one. After a failure a repeated call continues. */
    public CompletableFuture<Deleted> deleteGroup(String groupId) {
        return completions.submit(Request.of(Request.Operation.DELETE_GROUP).text(groupId), Response::deleted);
    }

    /** Deletes all share partitions of a topic in all groups, one by one, as {@link #deleteGroup}. */
    public CompletableFuture<Deleted> deleteTopic(UUID topicId) {
        return completions.submit(Request.of(Request.Operation.DELETE_TOPIC).uuid(topicId), Response::deleted);
    }

    /** Stages acks inside a producer's transaction, all or nothing. Answers what is newly staged. */
    public CompletableFuture<List<OffsetRange>> stage(Stage stage) {
        Request request = Request.of(Request.Operation.STAGE).key(stage.key()).i32(stage.stateEpoch())
                .i32(stage.leaderEpoch()).i64(stage.producerId()).i16(stage.producerEpoch()).flag(stage.twoPhase())
                .i8(stage.transactionVersion()).text(stage.transactionalId()).text(stage.memberId())
                .i32(stage.memberEpoch()).acks(stage.acks());
        return completions.submit(request, Response::ranges);
    }

    /** Takes a transaction marker: resolves whatever the producer staged. Repeating it is harmless. */
    public CompletableFuture<Resolved> marker(Marker marker) {
        Request request = Request.of(Request.Operation.MARKER).i64(marker.producerId()).i16(marker.producerEpoch())
                .i32(marker.coordinatorEpoch()).flag(marker.committed()).i8(marker.transactionVersion());
        return completions.submit(request, Response::resolved);
    }

    /** Ends one open epoch of a producer by hand; for operators. */
    public CompletableFuture<Resolved> forceResolve(long producerId, short epoch, boolean commit) {
        Request request = Request.of(Request.Operation.FORCE_RESOLVE).i64(producerId).i16(epoch).flag(commit);
        return completions.submit(request, Response::resolved);
    }

    /** At most so many share partitions in key order behind {@code after}; group and start may be null. Fences nobody. */
    public CompletableFuture<Page> list(String groupId, SharePartitionKey after, int limit) {
        Request request = Request.of(Request.Operation.LIST).flag(groupId != null);
        if (groupId != null) {
            request.text(groupId);
        }
        request.flag(after != null);
        if (after != null) {
            request.key(after);
        }
        return completions.submit(request.i32(limit), Response::page);
    }

    /** Folds everything accepted so far into the snapshot; answers the log position that it then holds. */
    public CompletableFuture<Long> checkpoint() {
        return completions.submit(Request.of(Request.Operation.CHECKPOINT), Response::i64);
    }

    /**
     * Answers what is under way, takes a last checkpoint and releases the directory. Blocks. Closing again does nothing.
     *
     * @throws ShareStoreException when the last checkpoint failed; everything answered is in the log all the same
     */
    @Override
    public void close() {
        try {
            Response.of(Native.close(handle));
        } catch (ShareStoreException e) {
            if (e.errorClass() != ErrorClass.CLOSED) {
                throw e;
            }
        }
    }

    @Override
    public String toString() {
        return "ShareStore[" + directory + "]";
    }
}
