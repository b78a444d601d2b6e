package sharestate;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** How calls fail. */
final class Failures {
    private Failures() {
    }

    /** The failure of a call, which must come. */
    static ShareStoreException of(CompletableFuture<?> call) {
        ExecutionException e = assertThrows(ExecutionException.class, () -> call.get(60, TimeUnit.SECONDS));
        return assertInstanceOf(ShareStoreException.class, e.getCause());
    }
}
