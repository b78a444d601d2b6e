package sharestate.it;

import static org.apache.kafka.clients.consumer.AcknowledgeType.ACCEPT;
import static org.apache.kafka.clients.consumer.AcknowledgeType.RELEASE;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.LongStream;

import sharestate.ShareStore;
import sharestate.StateBatch;
import sharestate.StoreOptions;
import sharestate.kafka.StateTopicWriter;

/** The way back to Kafka's own persister. */
class LeaveTest {
    @Test
    void kafkasOwnPersisterGoesOnWhereWeStopped() throws Exception {
        try (BrokerProcess broker = BrokerProcess.create(Persisters.SHARESTATE).start();
             ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("t", 1);
            Records.produce(broker.bootstrapServers(), "t", 0, 20);
            groups.prepare("g");
            try (Member member = new Member(broker.bootstrapServers(), "g", 10, "t")) {
                member.takeAtOnce(10, record -> record.offset() == 4 ? RELEASE : ACCEPT);
            }
            ShareGroupsTool tool = new ShareGroupsTool(broker.bootstrapServers());
            groups.awaitEmpty("g");
            List<String> before = tool.run("--describe", "--group", "g");
            broker.stop();
            List<Delivery> wanted = stillToCome(broker.storeDirectory(), 20);

            broker.use(Persisters.KAFKA).start();
            StateTopicWriter.run(broker.storeDirectory(), broker.bootstrapServers(), System.out);
            broker.stop();
            broker.start();
            assertEquals(before, tool.run("--describe", "--group", "g"));
            try (Member member = new Member(broker.bootstrapServers(), "g", 20, "t")) {
                List<Delivery> rest = member.drain(Duration.ofSeconds(4));
                assertEquals(wanted, rest.stream().sorted().toList());
            }
        }
    }

    /**
     * What the store says is still to be delivered of so many records. Delivery counts depend on what a consumer had
     * fetched ahead and gave back when it closed, so they are taken from there.
     */
    private static List<Delivery> stillToCome(Path directory, int records) throws Exception {
        TreeMap<Long, Integer> counts = new TreeMap<>();
        LongStream.range(0, records).forEach(offset -> counts.put(offset, 1));
        try (ShareStore store = ShareStore.open(directory, new StoreOptions())) {
            for (StateBatch batch : store.list("g", null, 10).get().rows().get(0).state().batches()) {
                for (long offset = batch.firstOffset(); offset <= batch.lastOffset(); offset++) {
                    if (batch.deliveryState() == 0) {
                        counts.put(offset, batch.deliveryCount() + 1);
                    } else {
                        counts.remove(offset);
                    }
                }
            }
        }
        List<Delivery> wanted = counts.entrySet().stream()
                .map(entry -> new Delivery(0, entry.getKey(), entry.getValue())).toList();
        assertEquals(11, wanted.size(), "the released record and the ten not yet accepted");
        return wanted;
    }
}
