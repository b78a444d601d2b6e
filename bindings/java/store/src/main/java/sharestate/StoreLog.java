package sharestate;

import java.nio.ByteBuffer;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Hands what the store's own threads report to the log of the JVM, on a daemon thread. */
final class StoreLog {
    private static final Logger LOG = LoggerFactory.getLogger("sharestate.store");

    private StoreLog() {
    }

    /** Starts the thread; called once, after the library is loaded. */
    static void start() {
        Thread thread = new Thread(StoreLog::run, "sharestate-log");
        thread.setDaemon(true);
        thread.start();
    }

    private static void run() {
        while (true) {
            Response line = new Response(ByteBuffer.wrap(Native.awaitLog()));
            int level = line.i8();
            String text = line.text();
            switch (level) {
                case 0 -> LOG.error(text);
                case 1 -> LOG.warn(text);
                default -> LOG.info(text);
            }
        }
    }
}
