package sharestate;

import java.util.OptionalInt;

/** Why a call of a {@link ShareStore} failed. Nobody has to match on the message. */
public class ShareStoreException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final ErrorClass errorClass;
    private final Integer kafkaCode;

    /** A failure; the code may be null. */
    ShareStoreException(ErrorClass errorClass, Integer kafkaCode, String message, Throwable cause) {
        super(message, cause);
        this.errorClass = errorClass;
        this.kafkaCode = kafkaCode;
    }

    /** The answer to a call on a store that is closed: Kafka's NOT_LEADER_OR_FOLLOWER. */
    static ShareStoreException closed() {
        return new ShareStoreException(ErrorClass.CLOSED, 6, "the store is closed", null);
    }

    /** A defect. */
    static ShareStoreException internal(String message, Throwable cause) {
        return new ShareStoreException(ErrorClass.INTERNAL, -1, message, cause);
    }

    /** What the caller can do about it. */
    public ErrorClass errorClass() {
        return errorClass;
    }

    /** Kafka's protocol error code, where one exists. */
    public OptionalInt kafkaCode() {
        return kafkaCode == null ? OptionalInt.empty() : OptionalInt.of(kafkaCode);
    }
}
