package sharestate.it;

/** Whose persister a broker runs with. */
enum Persisters {
    /** Kafka's own, over the topic __share_group_state. */
    KAFKA("org.apache.kafka.server.share.persister.DefaultStatePersister"),
    /** Ours, under the name of Kafka's class that it takes the place of. */
    SHARESTATE("org.apache.kafka.server.share.persister.NoOpStatePersister");

    private final String className;

    Persisters(String className) {
        this.className = className;
    }

    /** The value of group.share.persister.class.name. */
    String className() {
        return className;
    }
}
