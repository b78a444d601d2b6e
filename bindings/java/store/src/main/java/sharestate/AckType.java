package sharestate;

/** Kinds of acknowledgement; the order is that of Kafka's numbers. */
public enum AckType {
    /** The offset holds no user record. */
    GAP,
    /** Processed. */
    ACCEPT,
    /** Given back; cannot be staged. */
    RELEASE,
    /** Never to be delivered again. */
    REJECT,
    /** Lock prolonged; cannot be staged. */
    RENEW
}
