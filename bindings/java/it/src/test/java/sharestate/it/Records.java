package sharestate.it;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

import java.util.Map;
import java.util.UUID;

/** Produces records. */
final class Records {
    private static final int BATCH = 10;

    private Records() {
    }

    /** Produces so many records into a partition, ten to a batch, so that runs do not differ in their batches. */
    static void produce(String bootstrapServers, String topic, int partition, int records) {
        produce(bootstrapServers, topic, partition, 0, records);
    }

    /** As that; the records are numbered from {@code first} on. */
    static void produce(String bootstrapServers, String topic, int partition, int first, int records) {
        Map<String, Object> settings = Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers,
                ProducerConfig.LINGER_MS_CONFIG, 10_000);
        try (KafkaProducer<String, String> producer =
                     new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < records; i++) {
                String value = topic + "-" + partition + "-" + (first + i);
                producer.send(new ProducerRecord<>(topic, partition, null, value));
                if (i % BATCH == BATCH - 1) {
                    producer.flush();
                }
            }
        }
    }

    /** Produces one record; answers its value, which no other record has. */
    static String produceLast(String bootstrapServers, String topic, int partition) {
        String value = "last-" + UUID.randomUUID();
        Map<String, Object> settings = Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
        try (KafkaProducer<String, String> producer =
                     new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, partition, null, value));
        }
        return value;
    }

    /** Produces so many records into every partition. */
    static void produceEverywhere(String bootstrapServers, String topic, int partitions, int recordsEach) {
        Map<String, Object> settings = Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
        try (KafkaProducer<String, String> producer =
                     new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < recordsEach; i++) {
                for (int partition = 0; partition < partitions; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, partition + "-" + i));
                }
            }
        }
    }
}
