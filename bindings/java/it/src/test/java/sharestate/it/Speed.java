package sharestate.it;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Both persisters side by side in one run, taking turns. Prints figures and asserts nothing about them. Not among the tests
 * that run by themselves: {@code it.sh speed}.
 */
class Speed {
    private static final int[] CONSUMERS = {1, 8, 32};
    private static final int PARTITIONS = 8;
    private static final int POLL_RECORDS = 20;
    /** Records of a run for each of its consumers, up to so many consumers: runs take seconds, however many consume. */
    private static final int RECORDS = Integer.getInteger("sharestate.it.records", 16_000);
    private static final int SHARES = 4;
    private static final int TURNS = Integer.getInteger("sharestate.it.turns", 5);
    private static final int RESTARTS = Integer.getInteger("sharestate.it.restarts", 3);
    private static final int STATE_PARTITIONS = Integer.getInteger("sharestate.it.partitions", 1_000);
    private static final String[] JVM = {"-XX:+UseG1GC"};

    @Test
    void recordsAcknowledgedASecond() throws Exception {
        Map<Persisters, BrokerProcess> brokers = brokers();
        try {
            for (BrokerProcess broker : brokers.values()) {
                fillTopic(broker);
            }
            // The first turn warms both up.
            for (Persisters persister : Persisters.values()) {
                acknowledge(brokers.get(persister), "warm-up", PARTITIONS);
            }
            for (int consumers : CONSUMERS) {
                Map<Persisters, List<Double>> rates = lists();
                for (int turn = 1; turn <= TURNS; turn++) {
                    for (Persisters persister : Persisters.values()) {
                        double rate = acknowledge(brokers.get(persister), "g" + turn + "-" + consumers, consumers);
                        System.out.printf(Locale.ROOT, "turn=%d consumers=%d persister=%s records/s=%.0f%n", turn,
                                consumers, persister, rate);
                        rates.get(persister).add(rate);
                    }
                }
                conclude("records/s consumers=" + consumers, rates);
            }
        } finally {
            close(brokers);
        }
    }

    @Test
    void restartUntilTheFirstDelivery() throws Exception {
        Map<Persisters, BrokerProcess> brokers = brokers();
        try {
            for (BrokerProcess broker : brokers.values()) {
                fillState(broker);
                broker.stop();
            }
            Map<Persisters, List<Double>> answers = lists();
            Map<Persisters, List<Double>> deliveries = lists();
            for (int turn = 1; turn <= RESTARTS; turn++) {
                for (Persisters persister : Persisters.values()) {
                    BrokerProcess broker = brokers.get(persister);
                    long started = System.nanoTime();
                    broker.start();
                    double answered = millisSince(started);
                    try (Member member = new Member(broker.bootstrapServers(), "g0", 1, "wide")) {
                        member.hold(1);
                        double delivered = millisSince(started);
                        System.out.printf(Locale.ROOT, "turn=%d persister=%s answers-ms=%.0f first-delivery-ms=%.0f%n",
                                turn, persister, answered, delivered);
                        answers.get(persister).add(answered);
                        deliveries.get(persister).add(delivered);
                    }
                    // After a kill, most of the time would go into Kafka's recovery of a thousand partition logs.
                    broker.stop();
                }
            }
            conclude("restart-ms share-partitions=" + STATE_PARTITIONS + " until=answers", answers);
            conclude("restart-ms share-partitions=" + STATE_PARTITIONS + " until=first-delivery", deliveries);
        } finally {
            close(brokers);
        }
    }

    private static Map<Persisters, BrokerProcess> brokers() throws Exception {
        Map<Persisters, BrokerProcess> brokers = new EnumMap<>(Persisters.class);
        try {
            for (Persisters persister : Persisters.values()) {
                BrokerProcess broker = BrokerProcess.create(persister);
                brokers.put(persister, broker);
                broker.jvm(JVM).start();
            }
        } catch (Exception e) {
            close(brokers);
            throw e;
        }
        return brokers;
    }

    private static void close(Map<Persisters, BrokerProcess> brokers) throws Exception {
        for (BrokerProcess broker : brokers.values()) {
            broker.close();
        }
    }

    private static Map<Persisters, List<Double>> lists() {
        Map<Persisters, List<Double>> lists = new EnumMap<>(Persisters.class);
        for (Persisters persister : Persisters.values()) {
            lists.put(persister, new ArrayList<>());
        }
        return lists;
    }

    /** Prints both medians and their ratio. */
    private static void conclude(String what, Map<Persisters, List<Double>> figures) {
        double kafka = median(figures.get(Persisters.KAFKA));
        double ours = median(figures.get(Persisters.SHARESTATE));
        System.out.printf(Locale.ROOT, "counts: %s kafka=%.0f sharestate=%.0f ratio=%.2f%n", what, kafka, ours, ours / kafka);
    }

    private static double median(List<Double> figures) {
        return figures.stream().sorted().toList().get(figures.size() / 2);
    }

    private static double millisSince(long start) {
        return (System.nanoTime() - start) / 1e6;
    }

    private static void fillTopic(BrokerProcess broker) throws Exception {
        try (ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("speed", PARTITIONS);
            for (int partition = 0; partition < PARTITIONS; partition++) {
                Records.produce(broker.bootstrapServers(), "speed", partition, SHARES * RECORDS / PARTITIONS);
            }
        }
    }

    /** The consumers of a new group accept records, a request for each poll; answers records a second. */
    private static double acknowledge(BrokerProcess broker, String group, int consumers) throws Exception {
        try (ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.prepare(group);
        }
        int records = RECORDS * Math.min(consumers, SHARES);
        AtomicInteger left = new AtomicInteger(records);
        AtomicLong first = new AtomicLong(Long.MAX_VALUE);
        AtomicLong last = new AtomicLong(Long.MIN_VALUE);
        List<Callable<Void>> work = new ArrayList<>();
        for (int i = 0; i < consumers; i++) {
            work.add(() -> accept(broker, group, left, first, last));
        }
        ExecutorService pool = Executors.newFixedThreadPool(consumers);
        try {
            for (Future<Void> worker : pool.invokeAll(work)) {
                worker.get();
            }
            return (records - left.get()) * 1e9 / (last.get() - first.get());
        } finally {
            pool.shutdownNow();
        }
    }

    /** Takes part until none is left to do; keeps the moments of the first record and of the last acknowledgement. */
    private static Void accept(BrokerProcess broker, String group, AtomicInteger left, AtomicLong first, AtomicLong last)
            throws Exception {
        try (Member member = new Member(broker.bootstrapServers(), group, POLL_RECORDS, "speed")) {
            Await.untilBlocking("the records of " + group, () -> {
                ConsumerRecords<String, String> records = member.consumer().poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    first.accumulateAndGet(System.nanoTime(), Math::min);
                    records.forEach(record -> member.consumer().acknowledge(record, AcknowledgeType.ACCEPT));
                    member.commit();
                    last.accumulateAndGet(System.nanoTime(), Math::max);
                    left.addAndGet(-records.count());
                }
                return left.get() <= 0;
            });
        }
        return null;
    }

    /** Accepts one record in each partition of a wide topic and leaves one. */
    private static void fillState(BrokerProcess broker) throws Exception {
        try (ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("wide", STATE_PARTITIONS);
            groups.prepare("g0");
            Records.produceEverywhere(broker.bootstrapServers(), "wide", STATE_PARTITIONS, 1);
            try (Member member = new Member(broker.bootstrapServers(), "g0", 100, "wide")) {
                member.consume(STATE_PARTITIONS, record -> AcknowledgeType.ACCEPT);
            }
            Records.produceEverywhere(broker.bootstrapServers(), "wide", STATE_PARTITIONS, 1);
        }
    }
}
