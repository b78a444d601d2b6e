package sharestate.it;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** A share consumer in explicit acknowledgement mode, driven poll by poll. Not for several threads. */
final class Member implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(500);

    private final KafkaShareConsumer<String, String> consumer;

    /** Joins a group; one poll hands out no more than so many records. */
    Member(String bootstrapServers, String group, int pollRecords, String... topics) {
        consumer = new KafkaShareConsumer<>(Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers,
                ConsumerConfig.GROUP_ID_CONFIG, group,
                ConsumerConfig.SHARE_ACKNOWLEDGEMENT_MODE_CONFIG, "explicit",
                ConsumerConfig.SHARE_ACQUIRE_MODE_CONFIG, "record_limit",
                ConsumerConfig.MAX_POLL_RECORDS_CONFIG, pollRecords),
                new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topics));
    }

    /** Takes exactly so many deliveries, acknowledging each as decided and committing after each poll. */
    List<Delivery> consume(int deliveries, Function<ConsumerRecord<String, String>, AcknowledgeType> decision)
            throws Exception {
        List<Delivery> taken = new ArrayList<>();
        Await.untilBlocking(deliveries + " deliveries", () -> {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                consumer.acknowledge(record, decision.apply(record));
                taken.add(Delivery.of(record));
            }
            commit();
            return taken.size() >= deliveries;
        });
        if (taken.size() != deliveries) {
            throw new IllegalStateException(deliveries + " deliveries wanted, taken " + taken);
        }
        return taken;
    }

    /** Takes so many records that come in one poll, and acknowledges them in one request. */
    List<Delivery> takeAtOnce(int records, Function<ConsumerRecord<String, String>, AcknowledgeType> decision)
            throws Exception {
        List<Delivery> taken = new ArrayList<>();
        Await.untilBlocking(records + " records at once", () -> {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                consumer.acknowledge(record, decision.apply(record));
                taken.add(Delivery.of(record));
            }
            return !taken.isEmpty();
        });
        commit();
        if (taken.size() != records) {
            throw new IllegalStateException(records + " records wanted at once, taken " + taken);
        }
        return taken;
    }

    /** Acquires exactly so many records and leaves them unacknowledged. */
    List<Delivery> hold(int records) throws Exception {
        List<Delivery> held = new ArrayList<>();
        Await.untilBlocking(records + " records to hold", () -> {
            consumer.poll(POLL).forEach(record -> held.add(Delivery.of(record)));
            return held.size() >= records;
        });
        return held;
    }

    /**
     * Everything that is delivered before a record of this value, each accepted, and that record too. A partition's
     * leader hands out in the order of offsets, so when the value is that of the partition's last record, nothing else
     * was there to be delivered; no clock decides it.
     */
    List<Delivery> takeBefore(String value) throws Exception {
        List<Delivery> taken = new ArrayList<>();
        boolean[] seen = {false};
        Await.untilBlocking("the record " + value, () -> {
            for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                if (record.value().equals(value)) {
                    seen[0] = true;
                } else {
                    taken.add(Delivery.of(record));
                }
            }
            commit();
            return seen[0];
        });
        return taken;
    }

    /** Acknowledges what the last poll gave; the answer says that it is durable. */
    void commit() {
        consumer.commitSync(Await.LIMIT).values().forEach(error -> error.ifPresent(e -> {
            throw e;
        }));
    }

    /** The consumer. */
    KafkaShareConsumer<String, String> consumer() {
        return consumer;
    }

    @Override
    public void close() {
        consumer.close(Duration.ofSeconds(5));
    }
}
