package sharestate.kafka;

import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.common.protocol.Errors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import sharestate.ErrorClass;
import sharestate.ShareStoreException;

/** Turns failures of the store into Kafka's codes and texts, and tells the log what an operator has to do. */
final class PartitionErrors {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionErrors.class);

    private final String directory;
    private final Set<ErrorClass> told = ConcurrentHashMap.newKeySet();

    /** What one partition is answered with. */
    record PartitionError(short code, String message) {
    }

    /** For the store in this directory. */
    PartitionErrors(String directory) {
        this.directory = directory;
    }

    /** Code and text for a failure. */
    PartitionError of(Throwable failure) {
        Throwable cause = failure instanceof CompletionException && failure.getCause() != null
                ? failure.getCause() : failure;
        if (!(cause instanceof ShareStoreException)) {
            LOG.error("A call of the store in {} failed in an unexpected way", directory, cause);
            return new PartitionError(Errors.UNKNOWN_SERVER_ERROR.code(), String.valueOf(cause));
        }
        ShareStoreException exception = (ShareStoreException) cause;
        tell(exception);
        short code = (short) exception.kafkaCode().orElse(Errors.UNKNOWN_SERVER_ERROR.code());
        return new PartitionError(code, exception.getMessage());
    }

    /** A share partition whose pending acks this broker does not understand: hidden they would be delivered again. */
    static PartitionError hiddenPending(int ranges) {
        return new PartitionError(Errors.UNSUPPORTED_VERSION.code(), "the share partition has " + ranges
                + " ranges of pending transactional acknowledgements, which this broker does not understand; resolve"
                + " their transactions with `sharestate resolve`");
    }

    /** Once for each class: after its first failed write a store answers every call alike. */
    private void tell(ShareStoreException exception) {
        ErrorClass errorClass = exception.errorClass();
        switch (errorClass) {
            case REJECTED, RETRIABLE, CLOSED -> {
                // The caller's affair.
            }
            case POISONED -> {
                if (told.add(errorClass)) {
                    LOG.error("The share-state store in {} failed ({}): {}. Acknowledgements are refused from now on;"
                            + " nothing that was acknowledged is lost. Make room or repair the disk, then restart the"
                            + " broker; see `sharestate verify {}`.", directory, errorClass, exception.getMessage(),
                            directory);
                }
            }
            default -> {
                if (told.add(errorClass)) {
                    LOG.error("A call of the share-state store in {} failed ({}): {}. Share partitions that are not"
                            + " affected go on; more failures of this kind are not logged. Run `sharestate verify {}`.",
                            directory, errorClass, exception.getMessage(), directory);
                }
            }
        }
    }
}
