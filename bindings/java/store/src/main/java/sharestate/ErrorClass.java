package sharestate;

/** What a caller can do about an error. The order is that of the native library. */
public enum ErrorClass {
    /** The request is at fault; repeating it gives the same answer. */
    REJECTED,
    /** Nothing is wrong with the request or the data; a later try may succeed. */
    RETRIABLE,
    /** A write or sync failed. Only a fresh open decides what survived. */
    POISONED,
    /** Bytes on disk are not what was written. */
    CORRUPT,
    /** A system call failed. */
    IO,
    /** The store is closed, or was never open. */
    CLOSED,
    /** A defect of sharestate or of this binding. */
    INTERNAL,
    /** The native library cannot be loaded, or is of another version than the jar. */
    NATIVE_LIBRARY
}
