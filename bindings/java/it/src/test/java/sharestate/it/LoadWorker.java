package sharestate.it;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;

/** Accepts records until told to stop; a broker that has gone for a while does not matter. */
final class LoadWorker implements Callable<Void> {
    private static final Duration POLL = Duration.ofMillis(200);

    private final String bootstrapServers;
    private final String group;
    private final String topic;
    private final Ledger ledger;
    private final int pollRecords;

    LoadWorker(String bootstrapServers, String group, String topic, Ledger ledger, int pollRecords) {
        this.bootstrapServers = bootstrapServers;
        this.group = group;
        this.topic = topic;
        this.ledger = ledger;
        this.pollRecords = pollRecords;
    }

    @Override
    public Void call() throws InterruptedException {
        try (Member member = new Member(bootstrapServers, group, pollRecords, topic)) {
            while (!ledger.isFinished()) {
                if (ledger.isHeld()) {
                    Thread.sleep(10);
                    continue;
                }
                Map<Integer, List<String>> batch = new HashMap<>();
                for (ConsumerRecord<String, String> record : member.consumer().poll(POLL)) {
                    ledger.delivered(record.value());
                    member.consumer().acknowledge(record, AcknowledgeType.ACCEPT);
                    batch.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(record.value());
                }
                if (!batch.isEmpty()) {
                    settle(member, batch);
                }
            }
        }
        return null;
    }

    private void settle(Member member, Map<Integer, List<String>> batch) {
        Map<TopicIdPartition, Optional<KafkaException>> answers = member.consumer().commitSync(Duration.ofSeconds(20));
        Map<Integer, Optional<KafkaException>> byPartition = new HashMap<>();
        answers.forEach((partition, answer) -> byPartition.put(partition.partition(), answer));
        batch.forEach((partition, records) -> {
            Optional<KafkaException> answer = byPartition.get(partition);
            if (answer != null && answer.isEmpty()) {
                ledger.accepted(records);
            } else {
                ledger.unknown(records);
            }
        });
    }
}
