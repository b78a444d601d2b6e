package sharestate.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

import java.time.Duration;

/** Acknowledgements end as the output records of their transaction do, whatever happens. */
class TransactionsTest {
    private static final int MINUTE = 60_000;

    private static BrokerProcess broker;
    private static StoreProcess store;

    @BeforeAll
    static void start() throws Exception {
        broker = BrokerProcess.create(Persisters.SHARESTATE).start();
        store = new StoreProcess();
    }

    @AfterAll
    static void stop() throws Exception {
        store.close();
        broker.close();
        System.out.println("counts: transactions " + TransactionBench.counts());
    }

    @Test
    void aCommitAcknowledgesAll() throws Exception {
        try (TransactionBench bench = new TransactionBench(broker, store, "commit");
             KafkaProducer<String, String> producer = bench.producer(MINUTE)) {
            TransactionId transaction = bench.process(producer, 1);
            bench.assertPending();
            producer.commitTransaction();
            assertTrue(bench.end(transaction).committed());
            bench.assertAll(true, 1);
            bench.settle(AcknowledgeType.ACCEPT);
        }
    }

    @Test
    void anAbortGivesAllBackAndTheNextTryCommits() throws Exception {
        try (TransactionBench bench = new TransactionBench(broker, store, "abort");
             KafkaProducer<String, String> producer = bench.producer(MINUTE)) {
            TransactionId transaction = bench.process(producer, 1);
            producer.abortTransaction();
            assertEquals(false, bench.end(transaction).committed());
            bench.assertAll(false, 1);
            bench.settle(AcknowledgeType.RELEASE);
            TransactionId next = bench.process(producer, 2);
            producer.commitTransaction();
            assertTrue(bench.end(next).committed());
            bench.assertAll(true, 2);
        }
    }

    @Test
    void aProducerThatIsFencedByItsSuccessorLosesAll() throws Exception {
        try (TransactionBench bench = new TransactionBench(broker, store, "fenced");
             KafkaProducer<String, String> first = bench.producer(MINUTE)) {
            TransactionId lost = bench.process(first, 1);
            try (KafkaProducer<String, String> successor = bench.producer(MINUTE)) {
                assertEquals(false, bench.end(lost).committed());
                bench.assertAll(false, 1);
                String late = bench.stage(lost, 0, 1);
                assertTrue(late.startsWith("error 47 "), late);
                assertThrows(KafkaException.class, first::commitTransaction);
                bench.settle(AcknowledgeType.RELEASE);
                TransactionId next = bench.process(successor, 2);
                successor.commitTransaction();
                assertTrue(bench.end(next).committed());
                bench.assertAll(true, 2);
            }
        }
    }

    @Test
    void aTransactionThatTimesOutGivesAllBack() throws Exception {
        try (TransactionBench bench = new TransactionBench(broker, store, "timeout")) {
            KafkaProducer<String, String> producer = bench.producer(3_000);
            try {
                TransactionId transaction = bench.process(producer, 1);
                assertEquals(false, bench.end(transaction).committed());
                bench.assertAll(false, 1);
                assertThrows(KafkaException.class, producer::commitTransaction);
            } finally {
                producer.close(Duration.ZERO);
            }
        }
    }

    @Test
    void aBrokerKilledBetweenStageAndMarkerCommitsLater() throws Exception {
        try (TransactionBench bench = new TransactionBench(broker, store, "broker-killed");
             KafkaProducer<String, String> producer = bench.producer(MINUTE)) {
            TransactionId transaction = bench.process(producer, 1);
            broker.kill();
            broker.start();
            bench.assertPending();
            producer.commitTransaction();
            assertTrue(bench.end(transaction).committed());
            bench.assertAll(true, 1);
        }
    }

    @Test
    void aStoreKilledBetweenStageAndMarkerKeepsWhatIsStaged() throws Exception {
        try (TransactionBench bench = new TransactionBench(broker, store, "store-killed");
             KafkaProducer<String, String> producer = bench.producer(MINUTE)) {
            TransactionId committed = bench.process(producer, 1);
            store.kill();
            store.start();
            bench.assertPending();
            producer.commitTransaction();
            store.kill();
            store.start();
            assertTrue(bench.end(committed).committed());
            bench.assertAll(true, 1);
        }
    }
}
