package sharestate;

/**
 * The native library's functions. Requests and answers are bytes; a store is a number that is never used
 * twice, so that a wrong or closed one is an error and never a crash.
 */
final class Native {
    private static final Object LOCK = new Object();
    private static boolean loaded;
    private static ShareStoreException failure;

    private Native() {
    }

    /** Loads the library, once; a failure is told again at every call. */
    static void load() {
        synchronized (LOCK) {
            if (failure != null) {
                throw failure;
            }
            if (!loaded) {
                try {
                    NativeLibrary.load();
                    StoreLog.start();
                    loaded = true;
                } catch (ShareStoreException e) {
                    failure = e;
                    throw e;
                }
            }
        }
    }

    /** The release of the library. */
    static native String version();

    /** Opens a store: status, handle, identity, recovery report. */
    static native byte[] open(byte[] options);

    /** Starts a call whose answer comes out of {@link #await} under this id: status. */
    static native byte[] submit(long handle, long id, byte[] request);

    /** Waits for answers: id, length and answer of each. Null when the store is closed and nothing is left. */
    static native byte[] await(long handle);

    /** Closes a store, and waits for that: status. */
    static native byte[] close(long handle);

    /** Waits for a line of the store's log: level and text. */
    static native byte[] awaitLog();
}
