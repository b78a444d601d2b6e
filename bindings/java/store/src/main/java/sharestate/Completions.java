package sharestate;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The calls of one store that are under way, and the daemon thread that completes their futures. The thread ends
 * with the store; whatever depends on a future without an executor of its own runs on it and should be brief.
 */
final class Completions {
    private static final Logger LOG = LoggerFactory.getLogger(Completions.class);

    private final long handle;
    private final AtomicLong ids = new AtomicLong();
    private final Map<Long, Call<?>> calls = new ConcurrentHashMap<>();
    private volatile boolean ended;

    private record Call<T>(CompletableFuture<T> future, Function<Response, T> decode) {
        void complete(Response answer) {
            T value;
            try {
                value = decode.apply(answer.checked());
            } catch (ShareStoreException e) {
                future.completeExceptionally(e);
                return;
            } catch (RuntimeException e) {
                future.completeExceptionally(ShareStoreException.internal("an answer cannot be read: " + e, e));
                return;
            }
            future.complete(value);
        }
    }

    Completions(long handle) {
        this.handle = handle;
        Thread thread = new Thread(this::run, "sharestate-completions-" + handle);
        thread.setDaemon(true);
        thread.start();
    }

    /** Starts a call. Never throws: what is wrong is the future's. */
    <T> CompletableFuture<T> submit(Request request, Function<Response, T> decode) {
        Call<T> call = new Call<>(new CompletableFuture<>(), decode);
        long id = ids.incrementAndGet();
        calls.put(id, call);
        try {
            if (ended) {
                throw ShareStoreException.closed();
            }
            Response.of(Native.submit(handle, id, request.bytes()));
        } catch (ShareStoreException e) {
            calls.remove(id);
            call.future.completeExceptionally(e);
        } catch (RuntimeException e) {
            calls.remove(id);
            call.future.completeExceptionally(ShareStoreException.internal("a native call failed: " + e, e));
        }
        return call.future;
    }

    private void run() {
        try {
            byte[] answers = Native.await(handle);
            while (answers != null) {
                complete(new Response(ByteBuffer.wrap(answers)));
                answers = Native.await(handle);
            }
        } finally {
            // In this order: a call that does not see the flag is seen here.
            ended = true;
            for (Long id : calls.keySet()) {
                Call<?> call = calls.remove(id);
                if (call != null) {
                    call.future.completeExceptionally(ShareStoreException.closed());
                }
            }
        }
    }

    private void complete(Response answers) {
        while (!answers.isEmpty()) {
            Call<?> call = calls.remove(answers.i64());
            Response answer = answers.part();
            try {
                if (call != null) {
                    call.complete(answer);
                }
            } catch (Throwable e) {
                // A future catches what depends on it, except when memory or stack run out.
                LOG.error("completing a call failed", e);
            }
        }
    }
}
