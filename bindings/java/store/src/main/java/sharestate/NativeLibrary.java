package sharestate;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Properties;

/**
 * Finds and loads the native library: the one in the jar, by way of a private temporary directory that is gone
 * again before {@link #load} returns, or the file that the system property {@value #PATH_PROPERTY} names.
 */
final class NativeLibrary {
    /** System property that names a library file to load instead of the jar's. */
    static final String PATH_PROPERTY = "sharestate.native.path";

    private NativeLibrary() {
    }

    /** The release of the jar. */
    static String jarVersion() {
        Properties properties = new Properties();
        try (InputStream in = NativeLibrary.class.getResourceAsStream("version.properties")) {
            properties.load(in);
        } catch (IOException e) {
            throw failure("version.properties cannot be read from the jar", e);
        }
        return properties.getProperty("version");
    }

    /** Loads the library and compares its release with the jar's. */
    static void load() {
        String path = System.getProperty(PATH_PROPERTY);
        if (path == null) {
            loadFromJar();
        } else {
            link(Path.of(path).toAbsolutePath(), "check -D" + PATH_PROPERTY);
        }
        compareVersions(path == null ? "the library in the jar" : path);
    }

    private static void loadFromJar() {
        String name = "native/" + platform() + "/" + System.mapLibraryName("sharestate_jni");
        Path directory = null;
        Path file = null;
        try (InputStream in = NativeLibrary.class.getResourceAsStream(name)) {
            if (in == null) {
                throw failure("the jar holds no native library for " + platform() + "; build one with cargo and name it"
                        + " with -D" + PATH_PROPERTY, null);
            }
            directory = Files.createTempDirectory("sharestate-");
            file = directory.resolve(System.mapLibraryName("sharestate_jni"));
            Files.copy(in, file);
            link(file, "if the temporary directory is mounted noexec, choose another with -Djava.io.tmpdir");
        } catch (IOException e) {
            throw failure("the native library cannot be unpacked: " + e + "; choose another temporary directory with"
                    + " -Djava.io.tmpdir", e);
        } finally {
            // A loaded library needs its file no more, and a killed JVM leaves none behind.
            delete(file);
            delete(directory);
        }
    }

    private static void link(Path file, String advice) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw failure("the native library cannot be loaded: " + e.getMessage() + "; " + advice, e);
        }
    }

    private static void compareVersions(String library) {
        String found;
        try {
            found = Native.version();
        } catch (UnsatisfiedLinkError e) {
            throw failure(library + " is not sharestate's native library", e);
        }
        String wanted = jarVersion();
        if (!wanted.equals(found)) {
            throw failure("version mismatch: " + library + " is sharestate " + found + ", the jar is sharestate " + wanted
                    + "; use a library and a jar of the same release", null);
        }
    }

    /** For example linux-x86_64. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "");
        String architecture = System.getProperty("os.arch");
        return system + "-" + (architecture.equals("amd64") ? "x86_64" : architecture);
    }

    private static void delete(Path path) {
        if (path != null) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                path.toFile().deleteOnExit();
            }
        }
    }

    private static ShareStoreException failure(String message, Throwable cause) {
        return new ShareStoreException(ErrorClass.NATIVE_LIBRARY, null, message, cause);
    }
}
