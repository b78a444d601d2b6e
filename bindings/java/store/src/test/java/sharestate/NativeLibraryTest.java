package sharestate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Loading, each time in a JVM of its own. */
class NativeLibraryTest {
    @TempDir
    private Path directory;

    /** What such a JVM runs. */
    static final class Probe {
        private Probe() {
        }

        /** Opens a store in the directory given, twice if that fails; prints how it went. */
        public static void main(String[] arguments) {
            for (int i = 0; i < 2; i++) {
                try (ShareStore store = ShareStore.open(Path.of(arguments[0]), new StoreOptions())) {
                    System.out.println("opened " + store.recovery().incarnation());
                } catch (ShareStoreException e) {
                    System.out.println(e.errorClass() + " " + e.getMessage());
                }
            }
        }
    }

    @Test
    void theJarsLibraryLeavesNoFileBehind() throws Exception {
        Path temporary = Files.createDirectory(directory.resolve("tmp"));
        String said = probe("-Djava.io.tmpdir=" + temporary);
        assertEquals("opened 1\nopened 2\n", said);
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(List.of(), left.filter(path -> path.getFileName().toString().startsWith("sharestate")).toList());
        }
    }

    @Test
    void aLibraryOfAnotherReleaseIsRefusedNamingBoth() throws Exception {
        byte[] library;
        String name = "native/" + NativeLibrary.platform() + "/" + System.mapLibraryName("sharestate_jni");
        try (InputStream in = NativeLibrary.class.getResourceAsStream(name)) {
            library = in.readAllBytes();
        }
        byte[] tag = ("sharestate-jni " + NativeLibrary.jarVersion()).getBytes(StandardCharsets.UTF_8);
        int at = new String(library, StandardCharsets.ISO_8859_1).indexOf(new String(tag, StandardCharsets.ISO_8859_1));
        assertTrue(at > 0, "the library carries its release");
        library[at + tag.length - 1] ^= 1;
        String release = new String(library, at, tag.length, StandardCharsets.UTF_8).substring("sharestate-jni ".length());
        Path other = Files.write(directory.resolve("other.so"), library);
        assertRefused("version mismatch: " + other + " is sharestate " + release + ", the jar is sharestate "
                        + NativeLibrary.jarVersion(),
                probe("-Dsharestate.native.path=" + other));
    }

    @Test
    void aFileThatIsNoLibraryIsRefused() throws Exception {
        Path text = Files.writeString(directory.resolve("text.so"), "no library");
        assertRefused("the native library cannot be loaded", probe("-Dsharestate.native.path=" + text));
        Path missing = directory.resolve("missing.so");
        assertRefused(missing.toString(), probe("-Dsharestate.native.path=" + missing));
        Path foreign = Path.of(System.getProperty("java.home"), "lib", System.mapLibraryName("zip"));
        assertRefused(foreign + " is not sharestate's native library", probe("-Dsharestate.native.path=" + foreign));
    }

    @Test
    void aTemporaryDirectoryThatIsNotThereIsNamed() throws Exception {
        assertRefused("-Djava.io.tmpdir", probe("-Djava.io.tmpdir=" + directory.resolve("missing")));
    }

    /** Twice: a failure stays the same. */
    private static void assertRefused(String wanted, String said) {
        List<String> lines = said.lines().filter(line -> line.startsWith("NATIVE_LIBRARY")).toList();
        assertEquals(2, lines.size(), said);
        assertTrue(lines.get(0).contains(wanted), said);
        assertEquals(lines.get(0), lines.get(1));
    }

    private String probe(String... options) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(options));
        command.addAll(List.of(Probe.class.getName(), directory.resolve("store").toString()));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), said);
        return said;
    }
}
