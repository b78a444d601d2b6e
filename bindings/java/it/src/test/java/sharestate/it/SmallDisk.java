package sharestate.it;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A real file system of a given size, in a mount namespace that a process holds open: other processes enter it, and it is
 * gone with its holder, whose input ends with this JVM.
 */
final class SmallDisk implements AutoCloseable {
    private final Path directory;
    private final Process holder;

    /** Mounts a tmpfs of so many MiB. */
    SmallDisk(int mebibytes) throws IOException {
        directory = Files.createTempDirectory("sharestate-disk");
        holder = new ProcessBuilder("unshare", "--user", "--map-root-user", "--mount", "sh", "-euc",
                "mount -t tmpfs -o size=" + mebibytes + "m none " + directory + "; echo mounted; exec cat")
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String said = holder.inputReader(StandardCharsets.UTF_8).readLine();
        if (!"mounted".equals(said)) {
            throw new IOException("no file system could be mounted");
        }
    }

    /** Where it is mounted, for those inside. */
    Path directory() {
        return directory;
    }

    /** What a command line begins with to run inside. */
    List<String> enter() {
        return List.of("nsenter", "--target", Long.toString(holder.pid()), "--user", "--mount", "--preserve-credentials");
    }

    /** Runs a shell script inside; answers whether it succeeded. */
    boolean run(String script) throws Exception {
        List<String> command = new ArrayList<>(enter());
        command.addAll(List.of("sh", "-uc", script));
        return new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor() == 0;
    }

    @Override
    public void close() throws IOException {
        Processes.end(holder);
        Files.deleteIfExists(directory);
    }
}
