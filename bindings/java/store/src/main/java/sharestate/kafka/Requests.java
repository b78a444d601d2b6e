package sharestate.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.share.persister.GroupTopicPartitionData;
import org.apache.kafka.server.share.persister.PartitionIdData;
import org.apache.kafka.server.share.persister.PartitionInfoData;
import org.apache.kafka.server.share.persister.PersisterParameters;
import org.apache.kafka.server.share.persister.TopicData;

import sharestate.SharePartitionKey;

/** Takes requests of many partitions apart, and puts their answers together in the same order. */
final class Requests {
    private Requests() {
    }

    /**
     * Asks about each partition of a request. The answer carries the request's own topic id objects, because brokers
     * before 4.4 compare them by reference.
     *
     * @param ask gives the answer about one partition; its future never fails
     */
    static <P extends PartitionInfoData & PartitionIdData, R extends PartitionInfoData>
            CompletableFuture<List<TopicData<R>>> each(
                    GroupTopicPartitionData<P> request, BiFunction<SharePartitionKey, P, CompletableFuture<R>> ask) {
        List<CompletableFuture<R>> answers = new ArrayList<>();
        for (TopicData<P> topic : request.topicsData()) {
            UUID topicId = uuid(topic.topicId());
            for (P partition : topic.partitions()) {
                SharePartitionKey key = new SharePartitionKey(request.groupId(), topicId, partition.partition());
                answers.add(ask.apply(key, partition));
            }
        }
        return CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new))
                .thenApply(done -> assemble(request, answers));
    }

    private static <P extends PartitionInfoData, R extends PartitionInfoData> List<TopicData<R>> assemble(
            GroupTopicPartitionData<P> request, List<CompletableFuture<R>> answers) {
        List<TopicData<R>> topics = new ArrayList<>(request.topicsData().size());
        int next = 0;
        for (TopicData<P> topic : request.topicsData()) {
            List<R> partitions = new ArrayList<>(topic.partitions().size());
            for (int i = 0; i < topic.partitions().size(); i++) {
                partitions.add(answers.get(next++).join());
            }
            topics.add(new TopicData<>(topic.topicId(), partitions));
        }
        return topics;
    }

    /**
     * The data of a request.
     *
     * @throws IllegalArgumentException where Kafka's own persister finds the same fault
     */
    static <P extends PartitionInfoData & PartitionIdData> GroupTopicPartitionData<P> checked(
            GroupTopicPartitionData<P> data) {
        require(data != null, "there is no data");
        require(data.groupId() != null && !data.groupId().isEmpty(), "the group id is null or empty");
        require(data.topicsData() != null && !data.topicsData().isEmpty(), "there are no topics");
        for (TopicData<P> topic : data.topicsData()) {
            require(topic != null && topic.topicId() != null, "a topic id is null");
            require(topic.partitions() != null && !topic.partitions().isEmpty(), "a topic has no partitions");
            for (P partition : topic.partitions()) {
                require(partition != null && partition.partition() >= 0, "a partition is null or negative");
            }
        }
        return data;
    }

    /** Refuses a null request. */
    static <T extends PersisterParameters> T checked(T parameters) {
        require(parameters != null, "the request is null");
        return parameters;
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalArgumentException(otherwise);
        }
    }

    private static UUID uuid(Uuid id) {
        return new UUID(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }
}
