package sharestate.it;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;

/**
 * One consume-process-produce application: a share consumer takes records of a two-partition input topic, a transactional
 * producer writes a result for each. What a broker with KIP-1289 will do is done here: the acknowledgements are staged in
 * a store before the transaction ends, and the markers that the transaction coordinator wrote to the output are given to
 * the store.
 */
final class TransactionBench implements AutoCloseable {
    /** Records in each input partition. */
    static final int RECORDS = 5;

    private static final int PARTITIONS = 2;

    private final BrokerProcess broker;
    private final StoreProcess store;
    private final String name;
    private final ShareGroups groups;
    private final UUID inputId;
    private final Member member;
    private final List<ConsumerRecord<String, String>> held = new ArrayList<>();

    /** Fills the input and acquires all of it. */
    TransactionBench(BrokerProcess broker, StoreProcess store, String name) throws Exception {
        this.broker = broker;
        this.store = store;
        this.name = name;
        groups = new ShareGroups(broker.bootstrapServers());
        groups.createTopic(input(), PARTITIONS);
        groups.createTopic(output(), 1);
        groups.prepare(name, "share.record.lock.duration.ms", "60000");
        org.apache.kafka.common.Uuid id = groups.admin().describeTopics(List.of(input())).allTopicNames().get()
                .get(input()).topicId();
        inputId = new UUID(id.getMostSignificantBits(), id.getLeastSignificantBits());
        for (int partition = 0; partition < PARTITIONS; partition++) {
            Records.produce(broker.bootstrapServers(), input(), partition, RECORDS);
            store.initialize(name, inputId, partition);
        }
        member = new Member(broker.bootstrapServers(), name, PARTITIONS * RECORDS, input());
        acquire();
    }

    /** A producer of this application; every one fences those before it. */
    KafkaProducer<String, String> producer(int timeoutMillis) {
        KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of(
                "bootstrap.servers", broker.bootstrapServers(),
                "transactional.id", name,
                "transaction.timeout.ms", timeoutMillis), new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    /** Produces a result for each acquired record, and stages their acknowledgements in the same transaction. */
    TransactionId process(KafkaProducer<String, String> producer, int deliveryCount) throws Exception {
        producer.beginTransaction();
        for (ConsumerRecord<String, String> record : held) {
            producer.send(new ProducerRecord<>(output(), 0, null, key(record.partition(), record.offset())));
        }
        producer.flush();
        TransactionDescription open = groups.admin().describeTransactions(List.of(name)).description(name).get();
        TransactionId transaction = new TransactionId(name, open.producerId(), (short) open.producerEpoch());
        for (int partition = 0; partition < PARTITIONS; partition++) {
            assertEquals("ok [OffsetRange[first=0, last=" + (RECORDS - 1) + "]]",
                    stage(transaction, partition, deliveryCount));
        }
        return transaction;
    }

    /** Stages one partition; answers what the store said. */
    String stage(TransactionId transaction, int partition, int deliveryCount) throws Exception {
        return store.stage(name, inputId, partition, transaction, 0, RECORDS - 1, deliveryCount);
    }

    /** Waits for the coordinator's marker and gives it to the store, twice, as coordinators do. */
    TransactionMarker end(TransactionId transaction) throws Exception {
        TransactionMarker marker = new MarkerLog(broker, output()).await(transaction);
        String resolved = store.marker(marker);
        for (int partition = 0; partition < PARTITIONS; partition++) {
            if (!resolved.contains("partition=" + partition + "]=[OffsetRange[first=0, last=" + (RECORDS - 1) + "]]")) {
                throw new AssertionError("the marker resolved " + resolved);
            }
        }
        assertEquals("ok Resolved[partitions={}, contradicts=false, orphans=false]", store.marker(marker));
        return marker;
    }

    /** All acks are staged and none is decided. */
    void assertPending() throws Exception {
        for (int partition = 0; partition < PARTITIONS; partition++) {
            assertEquals("ok pending=1", store.read(name, inputId, partition));
        }
    }

    /** All acks and all output records are there, or none: what a read_committed consumer sees and the store agree. */
    void assertAll(boolean committed, int deliveryCount) throws Exception {
        Map<String, Boolean> acknowledged = new HashMap<>();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            int state = committed ? 2 : 0;
            assertEquals("ok 0-" + (RECORDS - 1) + "=" + state + "x" + deliveryCount + " pending=0",
                    store.read(name, inputId, partition));
            for (int offset = 0; offset < RECORDS; offset++) {
                acknowledged.put(key(partition, offset), committed);
            }
        }
        TreeSet<String> wanted = new TreeSet<>();
        acknowledged.forEach((record, done) -> {
            if (done) {
                wanted.add(record);
            }
        });
        assertEquals(List.copyOf(wanted), committedOutput());
    }

    /** The broker does what the store says of the acquired records; what is left is acquired again. */
    void settle(AcknowledgeType type) throws Exception {
        held.forEach(record -> member.consumer().acknowledge(record, type));
        member.commit();
        held.clear();
        if (type == AcknowledgeType.RELEASE) {
            acquire();
        }
    }

    @Override
    public void close() {
        member.close();
        groups.close();
    }

    private void acquire() throws Exception {
        Await.untilBlocking("the input", () -> {
            member.consumer().poll(Duration.ofMillis(500)).forEach(held::add);
            return !held.isEmpty();
        });
        assertEquals(PARTITIONS * RECORDS, held.size(), "all of the input comes at once");
    }

    /** What a read_committed consumer sees, sorted. */
    private List<String> committedOutput() {
        List<String> seen = new ArrayList<>();
        TopicPartition partition = new TopicPartition(output(), 0);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(Map.of(
                "bootstrap.servers", broker.bootstrapServers(), "isolation.level", "read_committed"),
                new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                consumer.poll(Duration.ofMillis(500)).forEach(record -> seen.add(record.value()));
            }
        }
        return seen.stream().sorted().toList();
    }

    private static String key(int partition, long offset) {
        return partition + ":" + offset;
    }

    private String input() {
        return "in-" + name;
    }

    private String output() {
        return "out-" + name;
    }
}
