package org.apache.kafka.server.share.persister;

import sharestate.kafka.Settings;
import sharestate.kafka.SharestatePersister;

/**
 * Takes the place of Kafka's class of this name. A released broker builds only persisters whose names it knows; this one
 * it builds with {@code new} and without arguments, so a jar that stands before Kafka's own on the class path decides
 * what it is. Kafka does not support this; {@code docs/kafka.md} says what follows from it.
 */
public class NoOpStatePersister extends SharestatePersister {
    /** Opens the store that the system properties name. */
    public NoOpStatePersister() {
        super(() -> Settings.from(System.getProperties()));
    }
}
