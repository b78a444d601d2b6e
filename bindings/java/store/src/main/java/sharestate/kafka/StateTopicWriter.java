package sharestate.kafka;

import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.share.generated.ShareSnapshotKey;
import org.apache.kafka.coordinator.share.generated.ShareSnapshotValue;

import sharestate.Page;
import sharestate.PartitionState;
import sharestate.SharePartitionKey;
import sharestate.ShareStore;
import sharestate.StateBatch;
import sharestate.StoreOptions;

/**
 * The way back to Kafka's own persister: writes every share partition of a store as a snapshot record into the topic
 * __share_group_state, where Kafka's share coordinator looks for it, and makes that topic if it is missing.
 *
 * <p>The broker runs with Kafka's own persister, no share consumer runs, and the broker is restarted afterwards, since its
 * share coordinator reads the topic at its start only. The store is left as it is. See {@code docs/kafka.md}.
 */
public final class StateTopicWriter {
    private static final String TOPIC = "__share_group_state";
    private static final int PAGE = 500;
    private static final short SNAPSHOT_VERSION = 0;
    /** A broker takes records of internal topics from clients of this name only. */
    private static final String CLIENT = "__admin_client";

    private StateTopicWriter() {
    }

    /** Arguments: the store's directory, the bootstrap servers. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("usage: StateTopicWriter STORE-DIRECTORY BOOTSTRAP-SERVERS");
            System.exit(2);
        }
        run(Path.of(arguments[0]), arguments[1], System.out);
    }

    /** Writes everything; prints how much it was. Refuses, before it writes anything, a store with pending acks. */
    public static void run(Path directory, String bootstrapServers, PrintStream out) throws Exception {
        StoreOptions options = new StoreOptions().create(StoreOptions.Create.NEVER);
        try (ShareStore store = ShareStore.open(directory, options)) {
            List<Page.Row> rows = rows(store);
            int partitions = partitions(bootstrapServers);
            write(rows, partitions, bootstrapServers);
            out.println(rows.size() + " share partitions written to " + TOPIC + "; now restart the broker");
        }
    }

    private static List<Page.Row> rows(ShareStore store) throws ExecutionException, InterruptedException {
        List<Page.Row> rows = new ArrayList<>();
        SharePartitionKey after = null;
        Page page;
        do {
            page = store.list(null, after, PAGE).get();
            for (Page.Row row : page.rows()) {
                if (!row.state().pending().isEmpty()) {
                    throw new IllegalStateException(row.key() + " has pending transactional acknowledgements; end their"
                            + " transactions first, see `sharestate resolve`");
                }
                rows.add(row);
                after = row.key();
            }
        } while (page.more());
        return rows;
    }

    private static void write(List<Page.Row> rows, int partitions, String bootstrapServers) throws Exception {
        Map<String, Object> client = Map.of("bootstrap.servers", bootstrapServers, "client.id", CLIENT, "acks", "all");
        List<Future<?>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                     new KafkaProducer<>(client, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (Page.Row row : rows) {
                sent.add(producer.send(new ProducerRecord<>(TOPIC, partitionOf(row.key(), partitions), key(row.key()),
                        value(row.state()))));
            }
        }
        for (Future<?> record : sent) {
            record.get();
        }
    }

    /** As Kafka's share coordinator places keys. */
    private static int partitionOf(SharePartitionKey key, int partitions) {
        return Utils.abs((key.groupId() + ":" + topicId(key) + ":" + key.partition()).hashCode()) % partitions;
    }

    private static byte[] key(SharePartitionKey key) {
        return MessageUtil.toCoordinatorTypePrefixedBytes(new ShareSnapshotKey()
                .setGroupId(key.groupId()).setTopicId(topicId(key)).setPartition(key.partition()));
    }

    private static byte[] value(PartitionState state) {
        long now = System.currentTimeMillis();
        return MessageUtil.toVersionPrefixedBytes(SNAPSHOT_VERSION, new ShareSnapshotValue()
                .setSnapshotEpoch(0).setStateEpoch(state.stateEpoch()).setLeaderEpoch(state.leaderEpoch())
                .setStartOffset(state.startOffset()).setDeliveryCompleteCount(state.deliveryCompleteCount())
                .setCreateTimestamp(now).setWriteTimestamp(now)
                .setStateBatches(state.batches().stream().map(StateTopicWriter::batch).toList()));
    }

    private static ShareSnapshotValue.StateBatch batch(StateBatch batch) {
        return new ShareSnapshotValue.StateBatch().setFirstOffset(batch.firstOffset()).setLastOffset(batch.lastOffset())
                .setDeliveryState(batch.deliveryState()).setDeliveryCount(batch.deliveryCount());
    }

    private static Uuid topicId(SharePartitionKey key) {
        return new Uuid(key.topicId().getMostSignificantBits(), key.topicId().getLeastSignificantBits());
    }

    /** How many partitions the topic has; it is made as a broker makes it if it is missing. */
    private static int partitions(String bootstrapServers) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrapServers))) {
            if (!admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get()
                    .contains(TOPIC)) {
                create(admin);
            }
            return admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC).partitions().size();
        }
    }

    private static void create(Admin admin) throws Exception {
        String broker = admin.describeCluster().nodes().get().iterator().next().idString();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, broker);
        var configs = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        int partitions = Integer.parseInt(configs.get("share.coordinator.state.topic.num.partitions").value());
        short replicas = Short.parseShort(configs.get("share.coordinator.state.topic.replication.factor").value());
        Map<String, String> settings = Map.of(
                "cleanup.policy", "delete", "retention.ms", "-1",
                "segment.bytes", configs.get("share.coordinator.state.topic.segment.bytes").value(),
                "min.insync.replicas", configs.get("share.coordinator.state.topic.min.isr").value());
        admin.createTopics(List.of(new NewTopic(TOPIC, partitions, replicas).configs(settings))).all().get();
    }
}
