package sharestate.it;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Both persisters side by side in one run, taking turns. Prints figures and asserts nothing about them. Not among the tests
 * that run by themselves: {@code it.sh speed}.
 */
class Speed {
    private static final int[] CONSUMERS = {1, 8, 32};
    private static final int PARTITIONS = 8;
    private static final int POLL_RECORDS = 20;
    private static final int RECORDS = Integer.getInteger("sharestate.it.records", 24_000);
    private static final int TURNS = Integer.getInteger("sharestate.it.turns", 3);
    private static final int STATE_PARTITIONS = Integer.getInteger("sharestate.it.partitions", 1_000);
    private static final String[] JVM = {"-XX:+UseG1GC"};

    @Test
    void recordsAcknowledgedASecond() throws Exception {
        Map<Persisters, BrokerProcess> brokers = new EnumMap<>(Persisters.class);
        try {
            for (Persisters persister : Persisters.values()) {
                brokers.put(persister, BrokerProcess.create(persister).jvm(JVM).start());
            }
            for (int turn = 0; turn <= TURNS; turn++) {
                for (int consumers : CONSUMERS) {
                    for (Map.Entry<Persisters, BrokerProcess> broker : brokers.entrySet()) {
                        double rate = acknowledge(broker.getValue(), "t" + turn + "-" + consumers, consumers);
                        // The first turn warms both up.
                        System.out.printf("%s consumers=%d persister=%s records/s=%.0f%n",
                                turn == 0 ? "warm-up" : "turn=" + turn, consumers, broker.getKey(), rate);
                    }
                }
            }
        } finally {
            for (BrokerProcess broker : brokers.values()) {
                broker.close();
            }
        }
    }

    @Test
    void restartUntilTheFirstDelivery() throws Exception {
        for (int turn = 1; turn <= TURNS; turn++) {
            for (Persisters persister : Persisters.values()) {
                try (BrokerProcess broker = BrokerProcess.create(persister).jvm(JVM).start()) {
                    fillState(broker);
                    broker.kill();
                    long started = System.nanoTime();
                    broker.start();
                    long answering = System.nanoTime();
                    try (Member member = new Member(broker.bootstrapServers(), "g0", 1, "wide")) {
                        member.hold(1);
                    }
                    System.out.printf("turn=%d share-partitions=%d persister=%s restart-ms=%d first-delivery-ms=%d%n", turn,
                            STATE_PARTITIONS, persister, (answering - started) / 1_000_000,
                            (System.nanoTime() - started) / 1_000_000);
                }
            }
        }
    }

    /** Consumers accept everything of a new topic, a request for each poll; answers records a second. */
    private static double acknowledge(BrokerProcess broker, String topic, int consumers) throws Exception {
        try (ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic(topic, PARTITIONS);
            groups.prepare(topic);
            for (int partition = 0; partition < PARTITIONS; partition++) {
                Records.produce(broker.bootstrapServers(), topic, partition, RECORDS / PARTITIONS);
            }
            AtomicInteger done = new AtomicInteger();
            List<Callable<Long>> work = new ArrayList<>();
            for (int i = 0; i < consumers; i++) {
                work.add(() -> accept(broker, topic, done));
            }
            ExecutorService pool = Executors.newFixedThreadPool(consumers);
            try {
                long first = Long.MAX_VALUE;
                for (Future<Long> worker : pool.invokeAll(work)) {
                    first = Math.min(first, worker.get());
                }
                return done.get() * 1e9 / (System.nanoTime() - first);
            } finally {
                pool.shutdownNow();
            }
        }
    }

    /** Answers when the first record came. */
    private static long accept(BrokerProcess broker, String topic, AtomicInteger done) {
        long first = Long.MAX_VALUE;
        try (Member member = new Member(broker.bootstrapServers(), topic, POLL_RECORDS, topic)) {
            while (done.get() < RECORDS) {
                ConsumerRecords<String, String> records = member.consumer().poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    first = Math.min(first, System.nanoTime());
                    records.forEach(record -> member.consumer().acknowledge(record, AcknowledgeType.ACCEPT));
                    member.commit();
                    done.addAndGet(records.count());
                }
            }
        }
        return first;
    }

    /** Accepts one record in each partition of a wide topic and leaves one. */
    private static void fillState(BrokerProcess broker) throws Exception {
        try (ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("wide", STATE_PARTITIONS);
            groups.prepare("g0");
            Records.produceEverywhere(broker.bootstrapServers(), "wide", STATE_PARTITIONS, 2);
            try (Member member = new Member(broker.bootstrapServers(), "g0", 100, "wide")) {
                int[] accepted = {0};
                Await.untilBlocking("state in every partition", () -> {
                    member.consumer().poll(Duration.ofMillis(500)).forEach(record -> {
                        boolean accept = record.offset() == 0;
                        accepted[0] += accept ? 1 : 0;
                        member.consumer().acknowledge(record, accept ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                    });
                    member.commit();
                    return accepted[0] >= STATE_PARTITIONS;
                });
            }
        }
    }
}
