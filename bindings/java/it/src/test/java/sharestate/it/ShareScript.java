package sharestate.it;

import static org.apache.kafka.clients.consumer.AcknowledgeType.ACCEPT;
import static org.apache.kafka.clients.consumer.AcknowledgeType.REJECT;
import static org.apache.kafka.clients.consumer.AcknowledgeType.RELEASE;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * What share groups go through at a broker: everything that makes a partition leader or the group coordinator call its
 * persister. Each step leaves lines in a transcript, which must not depend on whose persister it is; what Kafka's rules
 * say of a step is asserted on the way.
 */
final class ShareScript {
    private static final String RECORD_LOCK = "share.record.lock.duration.ms";

    private final BrokerProcess broker;
    private final ShareGroups groups;
    private final ShareGroupsTool tool;
    private final List<String> transcript = new ArrayList<>();

    private ShareScript(BrokerProcess broker, ShareGroups groups) {
        this.broker = broker;
        this.groups = groups;
        this.tool = new ShareGroupsTool(broker.bootstrapServers());
    }

    /** Runs all steps at a started broker; answers the transcript. */
    static List<String> run(BrokerProcess broker) throws Exception {
        try (ShareGroups groups = new ShareGroups(broker.bootstrapServers())) {
            ShareScript script = new ShareScript(broker, groups);
            script.acceptAndReleaseAndReject();
            script.locksExpire();
            script.deliveriesRunOut();
            script.killedInTheMiddle();
            script.stoppedAndStarted();
            script.offsetsReset();
            script.offsetsDeleted();
            script.groupDeleted();
            return script.transcript;
        }
    }

    private void acceptAndReleaseAndReject() throws Exception {
        groups.prepare("workers");
        for (String topic : List.of("bills", "orders")) {
            topic(topic, 1, 20);
            try (Member member = member("workers", 20, topic)) {
                note("first deliveries", member.takeAtOnce(20, record -> switch ((int) record.offset() % 5) {
                    case 0 -> RELEASE;
                    case 1 -> REJECT;
                    default -> ACCEPT;
                }));
                List<Delivery> again = member.consume(4, record -> ACCEPT);
                assertEquals(Collections.nCopies(4, 2), counts(again), "released records come once more");
                note("released records", again);
            }
            describe("workers");
        }
    }

    private void locksExpire() throws Exception {
        topic("slow", 1, 10);
        groups.prepare("sleepers", RECORD_LOCK, "1000");
        try (Member sleeper = member("sleepers", 10, "slow")) {
            note("held", sleeper.hold(10));
            // For those acquired from now on: a slow machine must not lose the lock again.
            groups.set("sleepers", RECORD_LOCK, "30000");
            try (Member other = member("sleepers", 10, "slow")) {
                List<Delivery> again = other.consume(10, record -> record.offset() < 7 ? ACCEPT : REJECT);
                assertEquals(Collections.nCopies(10, 2), counts(again), "an expired lock counts as a delivery");
                note("after their locks expired", again);
            }
        }
        describe("sleepers");
    }

    private void deliveriesRunOut() throws Exception {
        topic("poison", 1, 3);
        groups.prepare("unlucky");
        try (Member member = member("unlucky", 1, "poison")) {
            int bad = BrokerProcess.DELIVERY_LIMIT;
            List<Delivery> all = member.consume(2 + bad, record -> record.offset() == 1 ? RELEASE : ACCEPT);
            List<Integer> tries = counts(all.stream().filter(d -> d.offset() == 1).toList());
            assertEquals(IntStream.rangeClosed(1, bad).boxed().toList(), tries, "the limit is reached and kept");
            note("a record that is always released", all);
            List<Delivery> more = rest(member, "poison");
            assertEquals(List.of(), more, "nothing more of it");
            note("nothing more of it", more);
        }
        describe("unlucky");
    }

    /** Five accepted, two of the next five released, then three held: the broker is killed. */
    private void killedInTheMiddle() throws Exception {
        topic("crash", 1, 20);
        groups.prepare("survivors");
        try (Member member = member("survivors", 5, "crash")) {
            member.takeAtOnce(5, record -> ACCEPT);
            member.takeAtOnce(5, record -> record.offset() < 7 ? RELEASE : ACCEPT);
            note("held while the broker is killed", member.hold(5));
            broker.kill();
        }
        broker.start();
        describe("survivors");
        try (Member member = member("survivors", 20, "crash")) {
            List<Delivery> rest = rest(member, "crash");
            note("after the kill", rest);
            List<Delivery> expected = new ArrayList<>(List.of(new Delivery(0, 5, 2), new Delivery(0, 6, 2)));
            LongStream.rangeClosed(10, 19).forEach(offset -> expected.add(new Delivery(0, offset, 1)));
            assertEquals(expected, sorted(rest), "no accepted record comes back, none is lost, counts are kept");
        }
        describe("survivors");
    }

    private void stoppedAndStarted() throws Exception {
        broker.stop();
        broker.start();
        for (String group : List.of("workers", "sleepers", "unlucky", "survivors")) {
            describe(group);
        }
        try (Member member = member("workers", 10, "orders")) {
            List<Delivery> more = rest(member, "orders");
            assertEquals(List.of(), more, "nothing left after a clean restart");
            note("nothing left after a clean restart", more);
        }
    }

    private void offsetsReset() throws Exception {
        groups.awaitEmpty("workers");
        note(tool.run("--reset-offsets", "--group", "workers", "--topic", "orders:0", "--to-earliest", "--execute"));
        describe("workers");
        try (Member member = member("workers", 20, "orders")) {
            List<Delivery> again = member.consume(21, record -> ACCEPT);
            assertEquals(Collections.nCopies(21, 1), counts(again), "a reset starts anew");
            note("after the reset", again);
        }
        describe("workers");
        groups.awaitEmpty("workers");
        note(tool.run("--reset-offsets", "--group", "workers", "--topic", "orders", "--to-latest", "--execute"));
        describe("workers");
    }

    private void offsetsDeleted() throws Exception {
        groups.awaitEmpty("sleepers");
        note(tool.run("--delete-offsets", "--group", "sleepers", "--topic", "slow"));
        describe("sleepers");
    }

    private void groupDeleted() throws Exception {
        groups.awaitEmpty("survivors");
        note(tool.run("--delete", "--group", "survivors"));
        note(tool.run("--list"));
        try (Member member = member("survivors", 20, "crash")) {
            List<Delivery> again = member.consume(21, record -> ACCEPT);
            assertEquals(Collections.nCopies(21, 1), counts(again), "a deleted group starts anew");
            note("after the group was deleted", again);
        }
        describe("survivors");
    }

    private void topic(String name, int partitions, int recordsEach) throws Exception {
        groups.createTopic(name, partitions);
        for (int partition = 0; partition < partitions; partition++) {
            Records.produce(broker.bootstrapServers(), name, partition, recordsEach);
        }
    }

    /** What is still to be delivered of a topic, found out with one more record behind it. */
    private List<Delivery> rest(Member member, String topic) throws Exception {
        return member.takeBefore(Records.produceLast(broker.bootstrapServers(), topic, 0));
    }

    private Member member(String group, int pollRecords, String topic) {
        return new Member(broker.bootstrapServers(), group, pollRecords, topic);
    }

    private void describe(String group) {
        note(tool.run("--describe", "--group", group, "--verbose"));
    }

    private void note(String what, List<Delivery> deliveries) {
        transcript.add(what + ": " + sorted(deliveries));
    }

    private void note(List<String> lines) {
        transcript.addAll(lines);
    }

    private static List<Delivery> sorted(List<Delivery> deliveries) {
        return deliveries.stream().sorted().toList();
    }

    private static List<Integer> counts(List<Delivery> deliveries) {
        return deliveries.stream().map(Delivery::count).toList();
    }
}
