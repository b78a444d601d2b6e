package sharestate.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.junit.jupiter.api.Test;

/** The route into an unmodified broker. */
class BrokerStartsTest {
    @Test
    void anUnmodifiedBrokerPersistsItsShareGroupStateWithUs() throws Exception {
        try (BrokerProcess broker = BrokerProcess.create(Persisters.SHARESTATE).start();
             ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            groups.createTopic("orders", 1);
            Records.produce(broker.bootstrapServers(), "orders", 0, 20);
            groups.prepare("g");
            try (Member member = new Member(broker.bootstrapServers(), "g", 10, "orders")) {
                assertEquals(20, member.consume(20, record -> AcknowledgeType.ACCEPT).size());
            }
            broker.stop();
            System.out.println(String.join("\n", broker.logged("sharestate")));
            assertEquals(1, broker.logged("persists share-group state in " + broker.storeDirectory()).size());
            assertEquals(1, broker.logged("is closed").size());
            assertTrue(broker.dataDirectory().resolve("__share_group_state-0").toFile().mkdirs(),
                    "Kafka's own state topic was made");
        }
    }
}
