package sharestate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

@Timeout(120)
class ShareStoreTest {
    private static final UUID TOPIC = new UUID(1, 2);
    private static final SharePartitionKey KEY = new SharePartitionKey("grüppe:1", TOPIC, 3);

    @TempDir
    private Path directory;

    @Test
    void whatWasAnsweredIsThereAfterReopening() throws Exception {
        StateBatch batch = new StateBatch(10, 19, (byte) 2, (short) 1);
        try (ShareStore store = open()) {
            assertTrue(store.recovery().created());
            store.initialize(KEY, 1, 10).get();
            store.write(KEY, 1, 0, 10, 10, List.of(batch)).get();
            PartitionState state = new PartitionState(1, 0, 10, 10, List.of(batch), List.of());
            assertEquals(new Page(List.of(new Page.Row(KEY, state)), false), store.list("grüppe:1", null, 10).get());
        }
        try (ShareStore store = open()) {
            assertFalse(store.recovery().created());
            assertEquals(new PartitionState(1, 5, 10, 10, List.of(batch), List.of()), store.read(KEY, 5).get());
            assertEquals(new Summary(1, 5, 10, 10), store.summary(KEY).get());
            assertEquals(new Deleted(1, 0), store.deleteTopic(TOPIC).get());
            assertEquals(new Summary(0, 0, -1, -1), store.summary(KEY).get());
        }
    }

    @Test
    void callsOfOneThreadAreAppliedInTheirOrder() throws Exception {
        try (ShareStore store = open()) {
            store.initialize(KEY, 0, 0);
            List<CompletableFuture<?>> calls = new ArrayList<>();
            for (int i = 1; i <= 2_000; i++) {
                // Each reads what the one before it wrote; a write that overtakes another would be seen.
                calls.add(store.write(KEY, 0, 0, i, 0, List.of()));
                int wanted = i;
                calls.add(store.summary(KEY).thenAccept(summary -> assertEquals(wanted, summary.startOffset())));
            }
            CompletableFuture.allOf(calls.toArray(CompletableFuture[]::new)).get();
        }
    }

    @Test
    void stagedAcksAreResolvedByTheirMarker() throws Exception {
        try (ShareStore store = open()) {
            store.initialize(KEY, 0, 0).get();
            Stage stage = new Stage(KEY, 0, 0, 77, (short) 4, false, (byte) 2, "tx", "member", 1,
                    List.of(AckRange.accept(0, 4, (short) 1)));
            assertEquals(List.of(new OffsetRange(0, 4)), store.stage(stage).get());
            assertEquals("tx", store.read(KEY, 0).get().pending().get(0).transactionalId());
            Resolved resolved = store.marker(new Marker(77, (short) 5, 0, true, (byte) 2)).get();
            assertEquals(Map.of(KEY, List.of(new OffsetRange(0, 4))), resolved.partitions());
            assertEquals(List.of(new StateBatch(0, 4, (byte) 2, (short) 1)), store.read(KEY, 0).get().batches());
        }
    }

    @Test
    void refusalsCarryClassCodeAndText() throws Exception {
        try (ShareStore store = open()) {
            ShareStoreException unknown = Failures.of(store.read(KEY, 0));
            assertEquals(ErrorClass.REJECTED, unknown.errorClass());
            assertEquals(42, unknown.kafkaCode().orElseThrow());
            store.initialize(KEY, 2, 0).get();
            store.read(KEY, 9).get();
            assertEquals(74, Failures.of(store.read(KEY, 8)).kafkaCode().orElseThrow());
            assertEquals(124, Failures.of(store.initialize(KEY, 1, 0)).kafkaCode().orElseThrow());
            SharePartitionKey malformed = new SharePartitionKey("", TOPIC, 0);
            assertTrue(Failures.of(store.summary(malformed)).getMessage().contains("group id is empty"));
            List<StateBatch> acquired = List.of(new StateBatch(0, 0, (byte) 1, (short) 1));
            assertEquals(42, Failures.of(store.write(KEY, 2, 9, 0, 0, acquired)).kafkaCode().orElseThrow());
        }
    }

    @Test
    void aCallAfterCloseFailsAndClosingAgainDoesNothing() {
        ShareStore store = open();
        store.close();
        store.close();
        ShareStoreException failure = Failures.of(store.summary(KEY));
        assertEquals(ErrorClass.CLOSED, failure.errorClass());
        assertEquals(6, failure.kafkaCode().orElseThrow());
        assertEquals(ErrorClass.CLOSED, Failures.of(store.checkpoint()).errorClass());
    }

    @Test
    void everyCallThatRacesWithCloseEnds() throws Exception {
        int closed = 0;
        int done = 0;
        for (int round = 0; round < 20; round++) {
            ShareStore store = ShareStore.open(directory.resolve("race" + round), new StoreOptions());
            store.initialize(KEY, 0, 0).get();
            Queue<CompletableFuture<?>> calls = new ConcurrentLinkedQueue<>();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Thread thread = new Thread(() -> {
                    for (int n = 0; n < 300; n++) {
                        calls.add(store.write(KEY, 0, 0, n, 0, List.of()));
                    }
                });
                thread.start();
                threads.add(thread);
            }
            store.close();
            for (Thread thread : threads) {
                thread.join();
            }
            for (CompletableFuture<?> call : calls) {
                boolean failed = call.handle((value, failure) -> failure != null).get(60, TimeUnit.SECONDS);
                if (failed) {
                    assertEquals(ErrorClass.CLOSED, Failures.of(call).errorClass());
                    closed++;
                } else {
                    done++;
                }
            }
        }
        System.out.println("counts: raced-calls=" + (closed + done) + " done=" + done + " closed=" + closed);
        assertTrue(closed > 0, "some calls came too late");
    }

    @Test
    void aStoreMayBeClosedByWhatDependsOnItsOwnAnswer() throws Exception {
        ShareStore store = open();
        store.summary(KEY).thenRun(store::close).get(60, TimeUnit.SECONDS);
        open().close();
    }

    @Test
    void answersComeOnADaemonThread() throws Exception {
        try (ShareStore store = open()) {
            store.initialize(KEY, 0, 0).get();
            CompletableFuture<Thread> thread = new CompletableFuture<>();
            // A checkpoint takes a while, so the dependent action is there before the answer.
            store.checkpoint().thenRun(() -> thread.complete(Thread.currentThread()));
            assertTrue(thread.get().isDaemon() || thread.get() == Thread.currentThread());
        }
    }

    @Test
    void aStoreThatIsOpenIsNotOpenedAgain() {
        try (ShareStore store = open()) {
            ShareStoreException failure = assertThrows(ShareStoreException.class, this::open);
            assertEquals(ErrorClass.RETRIABLE, failure.errorClass());
            assertTrue(failure.getMessage().contains("in use"), failure.getMessage());
            assertTrue(store.directory().isAbsolute());
        }
    }

    @Test
    void anUnwritableDirectoryIsNamed() {
        // Not even root makes a directory here.
        ShareStoreException failure = assertThrows(ShareStoreException.class,
                () -> ShareStore.open(Path.of("/proc/self/share-state"), new StoreOptions()));
        assertEquals(ErrorClass.IO, failure.errorClass());
        assertTrue(failure.getMessage().contains("/proc/self/share-state"), failure.getMessage());
    }

    private ShareStore open() {
        return ShareStore.open(directory.resolve("store"), new StoreOptions());
    }
}
