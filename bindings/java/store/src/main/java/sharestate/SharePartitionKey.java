package sharestate;

import java.util.Objects;
import java.util.UUID;

/**
 * A share partition. What makes a key malformed (an empty group, the nil UUID, a negative partition) is
 * judged by the store, call by call.
 *
 * @param groupId   share group
 * @param topicId   topic
 * @param partition partition index
 */
public record SharePartitionKey(String groupId, UUID topicId, int partition) {
    /** Refuses null. */
    public SharePartitionKey {
        Objects.requireNonNull(groupId, "groupId");
        Objects.requireNonNull(topicId, "topicId");
    }
}
