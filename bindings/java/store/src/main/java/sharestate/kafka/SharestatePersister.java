package sharestate.kafka;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;

import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.PartitionStateSummaryData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import sharestate.PartitionState;
import sharestate.RecoveryReport;
import sharestate.SharePartitionKey;
import sharestate.ShareStore;
import sharestate.ShareStoreException;
import sharestate.StateBatch;
import sharestate.Summary;

/**
 * Kafka's share-group persister over a store on this broker's disk (KIP-932).
 *
 * <p>Calls never throw and never block. They are applied in the order in which one thread makes them. Their futures are
 * completed by the store's completion thread, without any lock held. A partition whose call failed is answered with
 * Kafka's code and a text, like Kafka's own persister; a malformed request fails the future with
 * {@link IllegalArgumentException}, again like Kafka's own.
 */
public class SharestatePersister implements Persister {
    private static final Logger LOG = LoggerFactory.getLogger(SharestatePersister.class);

    private static final int NO_EPOCH = PartitionFactory.DEFAULT_STATE_EPOCH;
    private static final long NO_OFFSET = PartitionFactory.UNINITIALIZED_START_OFFSET;
    private static final int NO_COUNT = PartitionFactory.UNINITIALIZED_DELIVERY_COMPLETE_COUNT;
    private static final short NONE = PartitionFactory.DEFAULT_ERROR_CODE;
    private static final String NO_ERROR = PartitionFactory.DEFAULT_ERR_MESSAGE;

    private final ShareStore store;
    private final PartitionErrors errors;

    /** Opens the store of these settings and says so in the log. A failure is logged with what to do, and thrown. */
    public SharestatePersister(Supplier<Settings> settings) {
        this(open(settings));
    }

    /** Over an open store, which {@link #stop} closes. */
    public SharestatePersister(ShareStore store) {
        this.store = store;
        this.errors = new PartitionErrors(store.directory().toString());
    }

    private static ShareStore open(Supplier<Settings> supplier) {
        Settings settings;
        try {
            settings = supplier.get();
        } catch (IllegalArgumentException e) {
            LOG.error("sharestate {} cannot start: {}", ShareStore.version(), e.getMessage());
            throw e;
        }
        try {
            ShareStore store = ShareStore.open(settings.directory(), settings.options());
            announce(store);
            return store;
        } catch (ShareStoreException e) {
            LOG.error("sharestate {} cannot open the store in {} ({}): {}. The broker does not start without it; one"
                    + " broker per store, see docs/kafka.md.", ShareStore.version(), settings.directory(),
                    e.errorClass(), e.getMessage());
            throw e;
        }
    }

    private static void announce(ShareStore store) {
        RecoveryReport report = store.recovery();
        LOG.info("sharestate {} persists share-group state in {} (store {}, {}opening {}): snapshot at LSN {}, {} entries"
                + " replayed, last LSN {}, {} ms", ShareStore.version(), store.directory(), store.uuid(),
                report.created() ? "made now, " : "", report.incarnation(), report.snapshotLsn(), report.replayed(),
                report.lastLsn(), report.elapsed().toMillis());
        if (!report.tornTail().isEmpty()) {
            LOG.info("The log of {} ended in a torn tail, as a crash leaves it; it was cut, a copy is in quarantine/: {}",
                    store.directory(), report.tornTail());
        }
    }

    @Override
    public CompletableFuture<InitializeShareGroupStateResult> initializeState(
            InitializeShareGroupStateParameters request) {
        return guarded(() -> Requests.each(
                Requests.checked(Requests.checked(request).groupTopicPartitionData()),
                (key, asked) -> outcome(key, store.initialize(key, asked.stateEpoch(), asked.startOffset())))
                .thenApply(topics -> new InitializeShareGroupStateResult.Builder().setTopicsData(topics).build()));
    }

    @Override
    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
        return guarded(() -> Requests.each(
                Requests.checked(Requests.checked(request).groupTopicPartitionData()),
                (key, asked) -> told(store.read(key, asked.leaderEpoch()), state -> state(key, state),
                        error -> state(key, error)))
                .thenApply(topics -> new ReadShareGroupStateResult.Builder().setTopicsData(topics).build()));
    }

    @Override
    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
        return guarded(() -> Requests.each(
                Requests.checked(Requests.checked(request).groupTopicPartitionData()),
                (key, asked) -> outcome(key, store.write(key, asked.stateEpoch(), asked.leaderEpoch(),
                        asked.startOffset(), asked.deliveryCompleteCount(), batches(asked))))
                .thenApply(topics -> new WriteShareGroupStateResult.Builder().setTopicsData(topics).build()));
    }

    @Override
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
        return guarded(() -> Requests.each(
                Requests.checked(Requests.checked(request).groupTopicPartitionData()),
                (key, asked) -> outcome(key, store.delete(key)))
                .thenApply(topics -> new DeleteShareGroupStateResult.Builder().setTopicsData(topics).build()));
    }

    @Override
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
            ReadShareGroupStateSummaryParameters request) {
        return guarded(() -> Requests.each(
                Requests.checked(Requests.checked(request).groupTopicPartitionData()),
                (key, asked) -> told(store.summary(key), summary -> summary(key, summary),
                        error -> summary(key, error)))
                .thenApply(topics -> new ReadShareGroupStateSummaryResult.Builder().setTopicsData(topics).build()));
    }

    /** Closes the store: answers what is under way, takes a last checkpoint and releases the directory. Blocks. */
    @Override
    public void stop() {
        try {
            store.close();
            LOG.info("The share-state store in {} is closed", store.directory());
        } catch (ShareStoreException e) {
            LOG.error("Closing the share-state store in {} failed ({}): {}. Nothing acknowledged is lost: the next"
                    + " start recovers it from the log.", store.directory(), e.errorClass(), e.getMessage());
        }
    }

    private <T> CompletableFuture<T> guarded(Supplier<CompletableFuture<T>> call) {
        try {
            return call.get();
        } catch (RuntimeException e) {
            // A persister must not throw: the broker asks where nothing catches it.
            LOG.error("A malformed request to the share-state store was refused: {}", e.getMessage());
            return CompletableFuture.failedFuture(e);
        }
    }

    private <T, R> CompletableFuture<R> told(CompletableFuture<T> call, Function<T, R> success,
                                             Function<PartitionErrors.PartitionError, R> error) {
        return call.handle((value, failure) ->
                failure == null ? success.apply(value) : error.apply(errors.of(failure)));
    }

    private CompletableFuture<PartitionErrorData> outcome(SharePartitionKey key, CompletableFuture<?> call) {
        return told(call, done -> PartitionFactory.newPartitionErrorData(key.partition(), NONE, NO_ERROR),
                error -> PartitionFactory.newPartitionErrorData(key.partition(), error.code(), error.message()));
    }

    private static PartitionAllData state(SharePartitionKey key, PartitionState state) {
        if (!state.pending().isEmpty()) {
            return state(key, PartitionErrors.hiddenPending(state.pending().size()));
        }
        List<PersisterStateBatch> batches = state.batches().stream()
                .map(batch -> new PersisterStateBatch(batch.firstOffset(), batch.lastOffset(), batch.deliveryState(),
                        batch.deliveryCount()))
                .toList();
        return PartitionFactory.newPartitionAllData(key.partition(), state.stateEpoch(), state.startOffset(), NONE,
                NO_ERROR, batches);
    }

    private static PartitionAllData state(SharePartitionKey key, PartitionErrors.PartitionError error) {
        return PartitionFactory.newPartitionAllData(key.partition(), NO_EPOCH, NO_OFFSET, error.code(),
                error.message(), List.of());
    }

    private static PartitionStateSummaryData summary(SharePartitionKey key, Summary summary) {
        return PartitionFactory.newPartitionStateSummaryData(key.partition(), summary.stateEpoch(),
                summary.startOffset(), summary.deliveryCompleteCount(), summary.leaderEpoch(), NONE, NO_ERROR);
    }

    private static PartitionStateSummaryData summary(SharePartitionKey key, PartitionErrors.PartitionError error) {
        return PartitionFactory.newPartitionStateSummaryData(key.partition(), NO_EPOCH, NO_OFFSET, NO_COUNT,
                PartitionFactory.DEFAULT_LEADER_EPOCH, error.code(), error.message());
    }

    private static List<StateBatch> batches(PartitionStateBatchData asked) {
        return asked.stateBatches().stream()
                .map(batch -> new StateBatch(batch.firstOffset(), batch.lastOffset(), batch.deliveryState(),
                        batch.deliveryCount()))
                .toList();
    }
}
