package sharestate.it;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;

/** Bounded waiting. */
final class Await {
    /** Upper bound of a single wait; far above what a busy machine needs. */
    static final Duration LIMIT = Duration.ofMinutes(5);

    private static final Duration PAUSE = Duration.ofMillis(100);

    private Await() {
    }

    /** Tries again and again, with a pause between tries. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        untilBlocking(what, () -> {
            boolean holds = condition.call();
            if (!holds) {
                Thread.sleep(PAUSE.toMillis());
            }
            return holds;
        });
    }

    /** Tries again and again; the condition itself waits a little each time. */
    static void untilBlocking(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("gave up waiting for " + what);
            }
        }
    }
}
