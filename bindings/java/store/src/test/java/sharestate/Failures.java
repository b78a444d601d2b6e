package sharestate;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** How calls fail. */
public final class Failures {
    private Failures() {
    }

    /** A failure as the native library tells it. */
    public static ShareStoreException make(ErrorClass errorClass, Integer kafkaCode, String message) {
        return new ShareStoreException(errorClass, kafkaCode, message, null);
    }

    /** The failure of a call, which must come. */
    static ShareStoreException of(CompletableFuture<?> call) {
        ExecutionException e = assertThrows(ExecutionException.class, () -> call.get(60, TimeUnit.SECONDS));
        return assertInstanceOf(ShareStoreException.class, e.getCause());
    }
}
