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
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One consume-process-produce application: share consumers take records of two input topics, a transactional producer
 * writes a result for each. What a broker with KIP-1289 will do is done here: the acknowledgements are staged in
 * a store before the transaction ends, and the markers that the transaction coordinator wrote to the output are given to
 * the store.
 */
final class TransactionBench implements AutoCloseable {
    /** Records in each input. */
    static final int RECORDS = 5;

    private static final int INPUTS = 2;

    private static final AtomicInteger BEGUN = new AtomicInteger();
    private static final AtomicInteger WHOLE = new AtomicInteger();

    private final BrokerProcess broker;
    private final StoreProcess store;
    private final String name;
    private final ShareGroups groups;
    private final UUID[] topicIds = new UUID[INPUTS];
    private final Member[] members = new Member[INPUTS];
    private final List<List<ConsumerRecord<String, String>>> held = new ArrayList<>();

    /** Fills the input and acquires all of it. */
    TransactionBench(BrokerProcess broker, StoreProcess store, String name) throws Exception {
        this.broker = broker;
        this.store = store;
        this.name = name;
        groups = new ShareGroups(broker.bootstrapServers());
        groups.createTopic(output(), 1);
        groups.prepare(name, "share.record.lock.duration.ms", "60000");
        for (int input = 0; input < INPUTS; input++) {
            topicIds[input] = groups.createTopic(topic(input), 1);
            Records.produce(broker.bootstrapServers(), topic(input), 0, RECORDS);
            store.initialize(name, topicIds[input], 0);
            members[input] = new Member(broker.bootstrapServers(), name, RECORDS, topic(input));
        }
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
        BEGUN.incrementAndGet();
        for (int input = 0; input < INPUTS; input++) {
            for (ConsumerRecord<String, String> record : held.get(input)) {
                producer.send(new ProducerRecord<>(output(), 0, null, key(input, record.offset())));
            }
        }
        producer.flush();
        TransactionDescription open = groups.admin().describeTransactions(List.of(name)).description(name).get();
        TransactionId transaction = new TransactionId(name, open.producerId(), (short) open.producerEpoch());
        for (int input = 0; input < INPUTS; input++) {
            assertEquals("ok [OffsetRange[first=0, last=" + (RECORDS - 1) + "]]",
                    stage(transaction, input, deliveryCount));
        }
        return transaction;
    }

    /** Stages all of one input; answers what the store said. */
    String stage(TransactionId transaction, int input, int deliveryCount) throws Exception {
        return store.stage(name, topicIds[input], 0, transaction, 0, RECORDS - 1, deliveryCount);
    }

    /** Waits for the coordinator's marker and gives it to the store, twice, as coordinators do. */
    TransactionMarker end(TransactionId transaction) throws Exception {
        TransactionMarker marker = new MarkerLog(broker, output()).await(transaction);
        String resolved = store.marker(marker);
        for (int input = 0; input < INPUTS; input++) {
            String all = "topicId=" + topicIds[input] + ", partition=0]=[OffsetRange[first=0, last=" + (RECORDS - 1) + "]]";
            if (!resolved.contains(all)) {
                throw new AssertionError("the marker resolved " + resolved);
            }
        }
        assertEquals("ok Resolved[partitions={}, contradicts=false, orphans=false]", store.marker(marker));
        return marker;
    }

    /** All acks are staged and none is decided. */
    void assertPending() throws Exception {
        for (int input = 0; input < INPUTS; input++) {
            assertEquals("ok pending=1", store.read(name, topicIds[input], 0));
        }
    }

    /** All acks and all output records are there, or none: what a read_committed consumer sees and the store agree. */
    void assertAll(boolean committed, int deliveryCount) throws Exception {
        Map<String, Boolean> acknowledged = new HashMap<>();
        for (int input = 0; input < INPUTS; input++) {
            int state = committed ? 2 : 0;
            assertEquals("ok 0-" + (RECORDS - 1) + "=" + state + "x" + deliveryCount + " pending=0",
                    store.read(name, topicIds[input], 0));
            for (int offset = 0; offset < RECORDS; offset++) {
                acknowledged.put(key(input, offset), committed);
            }
        }
        TreeSet<String> wanted = new TreeSet<>();
        acknowledged.forEach((record, done) -> {
            if (done) {
                wanted.add(record);
            }
        });
        assertEquals(List.copyOf(wanted), committedOutput());
        WHOLE.incrementAndGet();
    }

    /** Transactions begun, and those of them that were not seen to end all or nothing. */
    static String counts() {
        return "begun=" + BEGUN + " half=" + (BEGUN.get() - WHOLE.get());
    }

    /** The broker does what the store says of the acquired records; what is left is acquired again. */
    void settle(AcknowledgeType type) throws Exception {
        for (int input = 0; input < INPUTS; input++) {
            Member member = members[input];
            held.get(input).forEach(record -> member.consumer().acknowledge(record, type));
            member.commit();
        }
        if (type == AcknowledgeType.RELEASE) {
            acquire();
        }
    }

    @Override
    public void close() {
        for (Member member : members) {
            member.close();
        }
        groups.close();
    }

    private void acquire() throws Exception {
        held.clear();
        for (Member member : members) {
            List<ConsumerRecord<String, String>> records = new ArrayList<>();
            Await.untilBlocking("the input", () -> {
                member.consumer().poll(Duration.ofMillis(500)).forEach(records::add);
                return !records.isEmpty();
            });
            assertEquals(RECORDS, records.size(), "all of an input comes at once");
            held.add(records);
        }
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

    private static String key(int input, long offset) {
        return input + ":" + offset;
    }

    private String topic(int input) {
        return "in-" + name + "-" + input;
    }

    private String output() {
        return "out-" + name;
    }
}
