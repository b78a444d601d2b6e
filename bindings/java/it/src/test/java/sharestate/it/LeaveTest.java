package sharestate.it;

import static org.apache.kafka.clients.consumer.AcknowledgeType.ACCEPT;
import static org.apache.kafka.clients.consumer.AcknowledgeType.REJECT;
import static org.apache.kafka.clients.consumer.AcknowledgeType.RELEASE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.LongStream;

import sharestate.Page;
import sharestate.PartitionState;
import sharestate.ShareStore;
import sharestate.StateBatch;
import sharestate.StoreOptions;
import sharestate.kafka.StateTopicWriter;

/** The way back to Kafka's own persister. */
class LeaveTest {
    private static final int RECORDS = 20;
    /** The records of topic i are in its partition i. */
    private static final List<String> TOPICS = List.of("t0", "t1", "t2");
    private static final List<String> GROUPS = List.of("g", "h");

    @Test
    void kafkasOwnPersisterGoesOnWhereWeStopped() throws Exception {
        try (BrokerProcess broker = BrokerProcess.create(Persisters.SHARESTATE)
                     .set(BrokerProcess.DELIVERY_LIMIT_SETTING, 10).start();
             ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            ShareGroupsTool tool = new ShareGroupsTool(broker.bootstrapServers());
            Map<UUID, Integer> topics = consumeSome(broker, groups);
            List<String> before = described(tool);
            broker.stop();
            Map<String, List<Delivery>> wanted = stillToCome(broker.storeDirectory(), topics);
            assertEquals(GROUPS.size() * TOPICS.size(), wanted.size());

            broker.use(Persisters.KAFKA).start();
            StateTopicWriter.run(broker.storeDirectory(), broker.bootstrapServers(), System.out);
            broker.stop();
            broker.start();
            assertEquals(before, described(tool));
            int deliveries = 0;
            for (Map.Entry<String, List<Delivery>> entry : wanted.entrySet()) {
                List<Delivery> came = rest(broker, entry.getKey());
                System.out.println(entry.getKey() + " " + came);
                assertEquals(entry.getValue(), came, entry.getKey());
                deliveries += came.size();
            }
            assertUntouchedPartitionsServe(broker);
            System.out.println("counts: leave share-partitions=" + wanted.size() + " deliveries=" + deliveries
                    + " different=0");
        }
    }

    /** Every group accepts, rejects and releases some of every topic; answers the topics' ids and numbers. */
    private static Map<UUID, Integer> consumeSome(BrokerProcess broker, ShareGroups groups) throws Exception {
        Map<UUID, Integer> ids = new HashMap<>();
        for (String group : GROUPS) {
            groups.prepare(group);
        }
        for (int i = 0; i < TOPICS.size(); i++) {
            ids.put(groups.createTopic(TOPICS.get(i), TOPICS.size()), i);
            Records.produce(broker.bootstrapServers(), TOPICS.get(i), i, RECORDS);
            for (String group : GROUPS) {
                try (Member member = new Member(broker.bootstrapServers(), group, 10, TOPICS.get(i))) {
                    member.takeAtOnce(10, record -> switch ((int) record.offset()) {
                        case 4, 5 -> RELEASE;
                        case 7 -> REJECT;
                        default -> ACCEPT;
                    });
                    releaseUntilItCame(member, 4);
                }
                groups.awaitEmpty(group);
            }
        }
        return ids;
    }

    /** Releases whatever comes, until a record of this offset was among it. */
    private static void releaseUntilItCame(Member member, long offset) throws Exception {
        Await.untilBlocking("a released record", () -> {
            boolean came = false;
            for (ConsumerRecord<String, String> record : member.consumer().poll(Duration.ofMillis(500))) {
                member.consumer().acknowledge(record, RELEASE);
                came |= record.offset() == offset;
            }
            member.commit();
            return came;
        });
    }

    /**
     * What the store says is still to be delivered in each group and topic. What a consumer had fetched ahead it gave
     * back when it closed, and that counts as a delivery; whether it had is a matter of moments, so the counts are taken
     * from the store.
     */
    private static Map<String, List<Delivery>> stillToCome(Path directory, Map<UUID, Integer> topics) throws Exception {
        Map<String, List<Delivery>> all = new TreeMap<>();
        try (ShareStore store = ShareStore.open(directory, new StoreOptions())) {
            for (Page.Row row : store.list(null, null, 100).get().rows()) {
                int topic = topics.get(row.key().topicId());
                if (row.key().partition() == topic) {
                    List<Delivery> rest = stillToCome(topic, row.state());
                    List<Long> offsets = rest.stream().map(Delivery::offset).toList();
                    assertEquals(LongStream.concat(LongStream.of(4, 5), LongStream.range(10, RECORDS)).boxed().toList(),
                            offsets, "what was released and what was not accepted yet");
                    assertTrue(rest.get(0).count() >= 3, "a record that was released twice counts its deliveries");
                    all.put(row.key().groupId() + " " + TOPICS.get(topic), rest);
                }
            }
        }
        return all;
    }

    private static List<Delivery> stillToCome(int partition, PartitionState state) {
        TreeMap<Long, Integer> counts = new TreeMap<>();
        LongStream.range(state.startOffset(), RECORDS).forEach(offset -> counts.put(offset, 1));
        for (StateBatch batch : state.batches()) {
            for (long offset = batch.firstOffset(); offset <= batch.lastOffset(); offset++) {
                if (batch.deliveryState() == 0) {
                    counts.put(offset, batch.deliveryCount() + 1);
                } else {
                    counts.remove(offset);
                }
            }
        }
        return counts.entrySet().stream()
                .map(entry -> new Delivery(partition, entry.getKey(), entry.getValue())).toList();
    }

    /** What is delivered to a group of a topic, both given in one string. */
    private static List<Delivery> rest(BrokerProcess broker, String groupAndTopic) throws Exception {
        String[] words = groupAndTopic.split(" ");
        String last = Records.produceLast(broker.bootstrapServers(), words[1], TOPICS.indexOf(words[1]));
        try (Member member = new Member(broker.bootstrapServers(), words[0], RECORDS, words[1])) {
            // Two groups read each topic, and each has a last record of its own.
            return member.takeBefore(last).stream().filter(delivery -> delivery.offset() < RECORDS).sorted().toList();
        }
    }

    /** Also share partitions of which nothing was ever delivered: their rows hold no offset yet. */
    private static void assertUntouchedPartitionsServe(BrokerProcess broker) throws Exception {
        for (String group : GROUPS) {
            Set<String> missing = new HashSet<>();
            for (int i = 0; i < TOPICS.size(); i++) {
                for (int partition = 0; partition < TOPICS.size(); partition++) {
                    missing.add(Records.produceLast(broker.bootstrapServers(), TOPICS.get(i), partition));
                }
            }
            try (Member member = new Member(broker.bootstrapServers(), group, RECORDS, TOPICS.toArray(String[]::new))) {
                Await.untilBlocking("records of all partitions in " + group, () -> {
                    for (ConsumerRecord<String, String> record : member.consumer().poll(Duration.ofMillis(500))) {
                        member.consumer().acknowledge(record, ACCEPT);
                        missing.remove(record.value());
                    }
                    member.commit();
                    return missing.isEmpty();
                });
            }
        }
    }

    private static List<String> described(ShareGroupsTool tool) {
        List<String> lines = new ArrayList<>();
        GROUPS.forEach(group -> lines.addAll(tool.run("--describe", "--group", group)));
        return lines;
    }
}
