package sharestate.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.GroupTopicPartitionData;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionInfoData;
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
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

import sharestate.ShareStore;
import sharestate.StoreOptions;

/** Every field of every partition of a request of several topics, each with a value of its own, there and back. */
@Timeout(120)
class PersisterFieldsTest {
    private static final int TOPICS = 3;
    private static final int PARTITIONS = 4;
    private static final short OK = PartitionFactory.DEFAULT_ERROR_CODE;
    private static final String NO_MESSAGE = PartitionFactory.DEFAULT_ERR_MESSAGE;
    private static final int FENCED_STATE_EPOCH = 124;
    private static final int FENCED_LEADER_EPOCH = 74;

    @TempDir
    private Path directory;

    private final List<Uuid> topics = IntStream.range(0, TOPICS).mapToObj(i -> Uuid.randomUuid()).toList();
    private SharestatePersister persister;

    @BeforeEach
    void open() throws Exception {
        persister = new SharestatePersister(ShareStore.open(directory, new StoreOptions()));
        assertCodes(n -> 0, initialize(n -> 10 + n));
        assertCodes(n -> 0, persister.readState(new ReadShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(data(n -> PartitionFactory.newPartitionIdLeaderEpochData(partition(n), 20 + n)))
                .build()).get().topicsData(), PartitionAllData::errorCode);
    }

    @AfterEach
    void close() {
        persister.stop();
    }

    @Test
    void initialisedPartitionsAreReadAsTheyWereInitialised() throws Exception {
        assertAnswers(n -> PartitionFactory.newPartitionAllData(partition(n), 10 + n, 100 + n, OK, NO_MESSAGE, List.of()),
                read(20));
        assertAnswers(n -> PartitionFactory.newPartitionStateSummaryData(partition(n), 10 + n, 100 + n, 0, 20 + n,
                OK, NO_MESSAGE), summaries());
    }

    @Test
    void writtenPartitionsAreReadAsTheyWereWritten() throws Exception {
        assertCodes(n -> 0, write(n -> 10 + n, n -> 20 + n));
        assertAnswers(n -> PartitionFactory.newPartitionAllData(partition(n), 10 + n, 200 + n, OK, NO_MESSAGE, batches(n)),
                read(20));
        assertAnswers(n -> PartitionFactory.newPartitionStateSummaryData(partition(n), 10 + n, 200 + n, 1 + n, 20 + n,
                OK, NO_MESSAGE), summaries());
    }

    @Test
    void eachPartitionIsFencedByItself() throws Exception {
        assertCodes(n -> n % 2 == 0 ? 0 : FENCED_STATE_EPOCH, write(n -> 10 + n - n % 2, n -> 20 + n));
        assertCodes(n -> n % 3 == 0 ? 0 : FENCED_LEADER_EPOCH, write(n -> 10 + n, n -> 20 + n - n % 3));
        assertCodes(n -> n % 3 == 1 ? FENCED_STATE_EPOCH : 0, initialize(n -> 10 + n - (n % 3 == 1 ? 1 : 0)));
    }

    @Test
    void onlyThePartitionsOfTheRequestAreDeleted() throws Exception {
        TopicData<?> second = persister.deleteState(new DeleteShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(new GroupTopicPartitionData<>("g", List.of(new TopicData<>(topics.get(1),
                        List.of(PartitionFactory.newPartitionIdData(2)))))).build()).get().topicsData().get(0);
        assertEquals(1, second.partitions().size());
        int deleted = PARTITIONS + 2;
        assertAnswers(n -> n == deleted
                ? PartitionFactory.newPartitionStateSummaryData(2, 0, -1, -1, 0, OK, NO_MESSAGE)
                : PartitionFactory.newPartitionStateSummaryData(partition(n), 10 + n, 100 + n, 0, 20 + n, OK, NO_MESSAGE),
                summaries());
    }

    private static int partition(int n) {
        return n % PARTITIONS;
    }

    private static List<PersisterStateBatch> batches(int n) {
        return List.of(new PersisterStateBatch(200 + n, 300 + n, (byte) 0, (short) (1 + n)),
                new PersisterStateBatch(400 + n, 400 + n, (byte) 2, (short) (2 + n)),
                new PersisterStateBatch(402 + n, 500 + n, (byte) 4, (short) (3 + n)));
    }

    private <P extends PartitionInfoData> GroupTopicPartitionData<P> data(IntFunction<P> partition) {
        List<TopicData<P>> all = new ArrayList<>();
        for (int topic = 0; topic < TOPICS; topic++) {
            int first = topic * PARTITIONS;
            all.add(new TopicData<>(topics.get(topic),
                    IntStream.range(first, first + PARTITIONS).mapToObj(partition).toList()));
        }
        return new GroupTopicPartitionData<>("g", all);
    }

    private List<TopicData<PartitionErrorData>> initialize(IntFunction<Integer> stateEpoch) throws Exception {
        return persister.initializeState(new InitializeShareGroupStateParameters.Builder().setGroupTopicPartitionData(
                data(n -> PartitionFactory.newPartitionStateData(partition(n), stateEpoch.apply(n), 100 + n))).build())
                .get().topicsData();
    }

    private List<TopicData<PartitionErrorData>> write(IntFunction<Integer> stateEpoch, IntFunction<Integer> leaderEpoch)
            throws Exception {
        return persister.writeState(new WriteShareGroupStateParameters.Builder().setGroupTopicPartitionData(
                data(n -> PartitionFactory.newPartitionStateBatchData(partition(n), stateEpoch.apply(n), 200 + n, 1 + n,
                        leaderEpoch.apply(n), batches(n)))).build()).get().topicsData();
    }

    private List<TopicData<PartitionAllData>> read(int leaderEpoch) throws Exception {
        return persister.readState(new ReadShareGroupStateParameters.Builder().setGroupTopicPartitionData(
                data(n -> PartitionFactory.newPartitionIdLeaderEpochData(partition(n), leaderEpoch + n))).build())
                .get().topicsData();
    }

    private List<TopicData<PartitionStateSummaryData>> summaries() throws Exception {
        return persister.readSummary(new ReadShareGroupStateSummaryParameters.Builder().setGroupTopicPartitionData(
                data(n -> PartitionFactory.newPartitionIdLeaderEpochData(partition(n), 0))).build()).get().topicsData();
    }

    private void assertCodes(IntFunction<Integer> wanted, List<TopicData<PartitionErrorData>> answers) {
        assertCodes(wanted, answers, PartitionErrorData::errorCode);
    }

    private <R extends PartitionInfoData> void assertCodes(IntFunction<Integer> wanted, List<TopicData<R>> answers,
                                                           Function<R, Short> code) {
        assertEquals(IntStream.range(0, TOPICS * PARTITIONS).mapToObj(wanted).toList(),
                flat(answers).stream().map(answer -> (int) code.apply(answer)).toList());
    }

    private <R extends PartitionInfoData> void assertAnswers(IntFunction<R> wanted, List<TopicData<R>> answers) {
        assertEquals(IntStream.range(0, TOPICS * PARTITIONS).mapToObj(wanted).map(Object::toString).toList(),
                flat(answers).stream().map(Object::toString).toList());
    }

    private <R extends PartitionInfoData> List<R> flat(List<TopicData<R>> answers) {
        assertEquals(TOPICS, answers.size());
        for (int topic = 0; topic < TOPICS; topic++) {
            assertSame(topics.get(topic), answers.get(topic).topicId());
        }
        return answers.stream().flatMap(answer -> answer.partitions().stream()).toList();
    }
}
