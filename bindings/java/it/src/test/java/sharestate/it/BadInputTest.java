package sharestate.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.junit.jupiter.api.Test;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.FutureTask;

/** What goes wrong around a broker: it says so and what to do, and nothing that was acknowledged is lost. */
class BadInputTest {
    @Test
    void aBrokerThatCannotHaveItsStoreDoesNotStartAndSaysWhy() throws Exception {
        assertGivesUp(broker -> broker.with("sharestate.dir", ""), "no store directory is set");
        assertGivesUp(broker -> broker.with("sharestate.dri", "/x"), "-Dsharestate.dri is not a setting");
        // Not even root makes a directory here.
        assertGivesUp(broker -> broker.with("sharestate.dir", "/proc/self/share-state"), "/proc/self/share-state");
        assertGivesUp(broker -> broker.with("sharestate.native.path", BrokerProcess.jar()),
                "the native library cannot be loaded");
    }

    @Test
    void aBrokerOnAReadOnlyDiskDoesNotStartAndSaysWhy() throws Exception {
        try (SmallDisk disk = new SmallDisk(16)) {
            assertTrue(disk.run("mount -o remount,ro " + disk.directory()));
            assertGivesUp(broker -> broker.inside(disk), "Read-only file system");
        }
    }

    @Test
    void aSecondBrokerOnTheSameDirectoryIsRefusedAndTheFirstGoesOn() throws Exception {
        try (BrokerProcess first = BrokerProcess.create(Persisters.SHARESTATE).start();
             BrokerProcess second = BrokerProcess.create(Persisters.SHARESTATE);
             ShareGroups groups = new ShareGroups(first.bootstrapServers())) {
            second.with("sharestate.dir", first.storeDirectory().toString());
            assertNotEquals(0, second.startInVain());
            assertEquals(1, second.logged("the store is in use").stream()
                    .filter(line -> line.contains("cannot open the store")).count(), second.log());
            groups.createTopic("t", 1);
            Records.produce(first.bootstrapServers(), "t", 0, 10);
            groups.prepare("g");
            try (Member member = new Member(first.bootstrapServers(), "g", 10, "t")) {
                assertEquals(10, member.consume(10, record -> AcknowledgeType.ACCEPT).size());
            }
        }
    }

    @Test
    void aFullDiskRefusesAcknowledgementsAndLosesNone() throws Exception {
        try (SmallDisk disk = new SmallDisk(48);
             BrokerProcess broker = BrokerProcess.create(Persisters.SHARESTATE).inside(disk)
                     .with("sharestate.segment.bytes", "65536").with("sharestate.reserve.bytes", "1048576")
                     .set(BrokerProcess.DELIVERY_LIMIT_SETTING, 10).start();
             ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("t", 1);
            Records.produce(broker.bootstrapServers(), "t", 0, 6_000);
            groups.prepare("g", "share.record.lock.duration.ms", "10000");
            Ledger ledger = new Ledger();
            Thread worker = worker(broker, ledger);
            Await.until("progress", () -> ledger.accepted() >= 200);
            Path filler = disk.directory().resolve("filler");
            assertTrue(!disk.run("cat /dev/zero > " + filler), "the disk is full");
            Await.until("the store to fail", () -> broker.logged("Acknowledgements are refused from now on").size() == 1);
            ledger.finish();
            worker.join();

            broker.stop();
            assertTrue(disk.run("rm " + filler));
            broker.start();
            Ledger rest = new Ledger(ledger);
            Thread again = worker(broker, rest);
            Await.until("the rest", () -> rest.settled() >= 6_000 && groups.lag("g") == 0);
            rest.finish();
            again.join();
            System.out.println("counts: full-disk before " + ledger + "; after " + rest);
            assertEquals(List.of(), rest.comeBack());
        }
    }

    private static Thread worker(BrokerProcess broker, Ledger ledger) {
        Thread thread = new Thread(new FutureTask<>(new LoadWorker(broker.bootstrapServers(), "g", "t", ledger, 1)));
        thread.start();
        return thread;
    }

    private interface Setting {
        BrokerProcess of(BrokerProcess broker);
    }

    private static void assertGivesUp(Setting setting, String why) throws Exception {
        try (BrokerProcess broker = setting.of(BrokerProcess.create(Persisters.SHARESTATE))) {
            assertNotEquals(0, broker.startInVain());
            String line = broker.logged("ERROR sharestate.kafka").stream().findFirst().orElse(broker.log());
            assertTrue(line.contains(why), line);
            System.out.println(line);
            assertTrue(Files.notExists(broker.storeDirectory().resolve("STORE")));
        }
    }
}
