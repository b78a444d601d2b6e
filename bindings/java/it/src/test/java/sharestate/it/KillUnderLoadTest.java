package sharestate.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** A broker that is killed again and again while consumers work. */
class KillUnderLoadTest {
    private static final int PARTITIONS = 4;
    /** Records of each partition that are there before the first kill, between two and after the last. */
    private static final int STEP = 500;
    private static final int WORKERS = 3;
    private static final int POLL_RECORDS = 20;
    private static final int KILLS = 3;

    @Test
    void noAcceptedRecordComesBackAndNoneIsLostWhenTheBrokerIsKilled() throws Exception {
        try (BrokerProcess broker = BrokerProcess.create(Persisters.SHARESTATE)
                     .set(BrokerProcess.DELIVERY_LIMIT_SETTING, 10).start();
             ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("load", PARTITIONS);
            // What kills and a slow machine leave undone comes back soon, and does not run out of tries.
            groups.prepare("g", "share.record.lock.duration.ms", "10000");
            Ledger ledger = new Ledger();
            ExecutorService pool = Executors.newFixedThreadPool(WORKERS);
            List<Future<?>> workers = new ArrayList<>();
            for (int i = 0; i < WORKERS; i++) {
                workers.add(pool.submit(new LoadWorker(broker.bootstrapServers(), "g", "load", ledger, POLL_RECORDS)));
            }
            try {
                for (int kill = 0; kill < KILLS; kill++) {
                    int produced = produce(broker, ledger, kill);
                    ledger.awaitSettled(produced - PARTITIONS * STEP * 3 / 4);
                    broker.kill();
                    int left = produced - ledger.settled();
                    System.out.println("killed with " + left + " records left");
                    broker.start();
                }
                int all = produce(broker, ledger, KILLS);
                Await.until("the rest", () -> ledger.settled() >= all && groups.lag("g") == 0);
            } finally {
                ledger.finish();
                pool.shutdown();
            }
            for (Future<?> worker : workers) {
                worker.get();
            }
            System.out.println("counts: kills=" + KILLS + " " + ledger);
            assertEquals(List.of(), ledger.comeBack(), "accepted records that were delivered again");
            assertTrue(ledger.accepted() > 0, "something was accepted");
            assertEquals(KILLS + 1, broker.logged("persists share-group state in").size());
        }
    }

    /** Produces one more step, which the workers then all find at once; answers how many records there are now. */
    private static int produce(BrokerProcess broker, Ledger ledger, int step) {
        ledger.hold(true);
        for (int partition = 0; partition < PARTITIONS; partition++) {
            Records.produce(broker.bootstrapServers(), "load", partition, step * STEP, STEP);
        }
        ledger.hold(false);
        return (step + 1) * PARTITIONS * STEP;
    }
}
