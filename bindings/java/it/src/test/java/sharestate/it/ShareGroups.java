package sharestate.it;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** What an administrator does to topics and share groups. */
final class ShareGroups implements AutoCloseable {
    private final Admin admin;

    /** At this broker. */
    ShareGroups(String bootstrapServers) {
        admin = Admin.create(Map.of("bootstrap.servers", bootstrapServers));
    }

    /** The client. */
    Admin admin() {
        return admin;
    }

    /** Creates a topic; answers its id. */
    UUID createTopic(String name, int partitions) throws Exception {
        CreateTopicsResult made = admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1)));
        Uuid id = made.topicId(name).get();
        return new UUID(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    /** Sets a group up: it reads from the beginning, with the shortest lock. */
    void prepare(String group, String... namesAndValues) throws Exception {
        set(group, "share.auto.offset.reset", "earliest");
        for (int i = 0; i < namesAndValues.length; i += 2) {
            set(group, namesAndValues[i], namesAndValues[i + 1]);
        }
    }

    /** Sets one group setting. */
    void set(String group, String name, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        Collection<AlterConfigOp> change =
                List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET));
        admin.incrementalAlterConfigs(Map.of(resource, change)).all().get();
    }

    /** Waits until the last member has left. */
    void awaitEmpty(String group) throws Exception {
        Await.until(group + " to be empty", () -> describe(group).groupState() == GroupState.EMPTY);
    }

    /** Records that are not done yet, over all partitions; at least 1 while that of a partition is not known. */
    long lag(String group) throws Exception {
        return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo(group).get().values().stream()
                .mapToLong(info -> info == null ? 1 : info.lag().orElse(1L)).sum();
    }

    /** What the coordinator says of one group. */
    ShareGroupDescription describe(String group) throws Exception {
        return admin.describeShareGroups(List.of(group)).all().get().get(group);
    }

    @Override
    public void close() {
        admin.close();
    }
}
