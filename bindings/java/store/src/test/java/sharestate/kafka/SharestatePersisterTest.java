package sharestate.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.GroupTopicPartitionData;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionIdLeaderEpochData;
import org.apache.kafka.server.share.persister.PartitionInfoData;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.PartitionStateData;
import org.apache.kafka.server.share.persister.PartitionStateSummaryData;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;

import sharestate.AckRange;
import sharestate.SharePartitionKey;
import sharestate.ShareStore;
import sharestate.Stage;
import sharestate.StoreOptions;

@Timeout(120)
class SharestatePersisterTest {
    private static final short INVALID_REQUEST = 42;

    @TempDir
    private Path directory;

    private final Uuid topic = Uuid.randomUuid();
    private ShareStore store;
    private SharestatePersister persister;

    @BeforeEach
    void open() {
        store = ShareStore.open(directory, new StoreOptions());
        persister = new SharestatePersister(store);
    }

    @AfterEach
    void close() {
        persister.stop();
    }

    @Test
    void tenThousandPartitionsAreAnsweredInTheirOrder() throws Exception {
        List<PartitionStateData> all = IntStream.range(0, 10_000)
                .mapToObj(i -> PartitionFactory.newPartitionStateData(i, 1, i)).toList();
        List<TopicData<PartitionErrorData>> answers = initialize(all).get();
        assertEquals(1, answers.size());
        List<PartitionErrorData> partitions = answers.get(0).partitions();
        assertEquals(10_000, partitions.size());
        for (int i = 0; i < partitions.size(); i++) {
            assertEquals(i, partitions.get(i).partition());
            assertEquals(0, partitions.get(i).errorCode());
        }
        PartitionAllData last = read(9_999, 0);
        assertEquals(9_999, last.startOffset());
        assertEquals(1, last.stateEpoch());
    }

    @Test
    void theAnswerCarriesTheTopicIdObjectOfTheRequest() throws Exception {
        initialize(List.of(PartitionFactory.newPartitionStateData(0, 0, 0))).get();
        assertSame(topic, persister.readState(readRequest(0, 0)).get().topicsData().get(0).topicId());
        assertSame(topic, persister.writeState(writeRequest(0)).get().topicsData().get(0).topicId());
    }

    @Test
    void aRequestWithoutPartitionsFailsAndDoesNotThrow() {
        assertRefused(initialize(List.of()));
        assertRefused(persister.readState(null));
        assertRefused(persister.deleteState(new DeleteShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", List.of())).build()));
        assertRefused(persister.readSummary(new ReadShareGroupStateSummaryParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("", topics(
                        List.of(PartitionFactory.newPartitionIdLeaderEpochData(0, 0))))).build()));
    }

    @Test
    void topicsThatAreNotKnownAreAnsweredAsKafkaAnswersWhatIsNotInitialised() throws Exception {
        assertEquals(INVALID_REQUEST, read(0, 0).errorCode());
        PartitionErrorData written = persister.writeState(writeRequest(0)).get().topicsData().get(0).partitions().get(0);
        assertEquals(INVALID_REQUEST, written.errorCode());
        assertTrue(written.errorMessage().contains("uninitialized"), written.errorMessage());
        PartitionStateSummaryData summary = summary(0);
        assertEquals(0, summary.errorCode());
        assertEquals(-1, summary.startOffset());
        assertEquals(-1, summary.deliveryCompleteCount());
        DeleteShareGroupStateParameters delete = new DeleteShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", topics(
                        List.of(PartitionFactory.newPartitionIdData(0))))).build();
        assertEquals(0, persister.deleteState(delete).get().topicsData().get(0).partitions().get(0).errorCode());
    }

    @Test
    void staleLeadersAreFenced() throws Exception {
        initialize(List.of(PartitionFactory.newPartitionStateData(0, 0, 0))).get();
        assertEquals(0, read(0, 5).errorCode());
        assertEquals(74, read(0, 4).errorCode());
    }

    @Test
    void whatIsWrittenIsReadAndSummedUp() throws Exception {
        initialize(List.of(PartitionFactory.newPartitionStateData(0, 0, 0))).get();
        assertEquals(0, persister.writeState(writeRequest(0)).get().topicsData().get(0).partitions().get(0).errorCode());
        assertEquals(List.of(new PersisterStateBatch(0, 9, (byte) 2, (short) 1)), read(0, 0).stateBatches());
        assertEquals(10, summary(0).deliveryCompleteCount());
    }

    @Test
    void aBrokerThatDoesNotUnderstandPendingAcksIsNotShownTheRest() throws Exception {
        initialize(List.of(PartitionFactory.newPartitionStateData(0, 0, 0))).get();
        SharePartitionKey key = new SharePartitionKey("g",
                new UUID(topic.getMostSignificantBits(), topic.getLeastSignificantBits()), 0);
        store.stage(new Stage(key, 0, 0, 7, (short) 0, false, (byte) 2, "tx", "m", 0,
                List.of(AckRange.accept(0, 0, (short) 1)))).get();
        PartitionAllData answer = read(0, 0);
        assertEquals(35, answer.errorCode());
        assertTrue(answer.errorMessage().contains("sharestate resolve"), answer.errorMessage());
    }

    @Test
    void afterStopEveryPartitionIsAnsweredWithAnError() throws Exception {
        persister.stop();
        persister.stop();
        assertEquals(6, read(0, 0).errorCode());
        assertEquals("the store is closed", summary(0).errorMessage());
    }

    private static void assertRefused(CompletableFuture<?> call) {
        Throwable cause = assertThrows(ExecutionException.class, call::get).getCause();
        assertInstanceOf(IllegalArgumentException.class, cause);
    }

    private <P extends PartitionInfoData> List<TopicData<P>> topics(
            List<P> partitions) {
        return List.of(new TopicData<>(topic, partitions));
    }

    private CompletableFuture<List<TopicData<PartitionErrorData>>> initialize(List<PartitionStateData> partitions) {
        return persister.initializeState(new InitializeShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", topics(partitions))).build())
                .thenApply(result -> result.topicsData());
    }

    private ReadShareGroupStateParameters readRequest(int partition, int leaderEpoch) {
        List<PartitionIdLeaderEpochData> asked =
                List.of(PartitionFactory.newPartitionIdLeaderEpochData(partition, leaderEpoch));
        return new ReadShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", topics(asked))).build();
    }

    private PartitionAllData read(int partition, int leaderEpoch) throws Exception {
        return persister.readState(readRequest(partition, leaderEpoch)).get().topicsData().get(0).partitions().get(0);
    }

    private WriteShareGroupStateParameters writeRequest(int partition) {
        List<PartitionStateBatchData> asked = List.of(PartitionFactory.newPartitionStateBatchData(partition, 0, 0, 10, 0,
                List.of(new PersisterStateBatch(0, 9, (byte) 2, (short) 1))));
        return new WriteShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", topics(asked))).build();
    }

    private PartitionStateSummaryData summary(int partition) throws Exception {
        List<PartitionIdLeaderEpochData> asked = List.of(PartitionFactory.newPartitionIdLeaderEpochData(partition, 0));
        return persister.readSummary(new ReadShareGroupStateSummaryParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", topics(asked))).build())
                .get().topicsData().get(0).partitions().get(0);
    }
}
