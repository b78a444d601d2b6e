package sharestate.it;

import static org.apache.kafka.clients.consumer.AcknowledgeType.ACCEPT;
import static org.apache.kafka.clients.consumer.AcknowledgeType.RELEASE;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;

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

            broker.use(Persisters.KAFKA).start();
            StateTopicWriter.run(broker.storeDirectory(), broker.bootstrapServers(), System.out);
            broker.stop();
            broker.start();
            assertEquals(before, tool.run("--describe", "--group", "g"));
            try (Member member = new Member(broker.bootstrapServers(), "g", 20, "t")) {
                List<Delivery> rest = member.drain(Duration.ofSeconds(4));
                List<Delivery> wanted = Stream.concat(Stream.of(new Delivery(0, 4, 2)),
                        LongStream.range(10, 20).mapToObj(offset -> new Delivery(0, offset, 1))).toList();
                assertEquals(wanted, rest.stream().sorted().toList());
            }
        }
    }
}
