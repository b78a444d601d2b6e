package sharestate.it;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import java.util.stream.Stream;

/** A {@link StoreServer} and the talk with it. The process ends with this JVM, because its input does. */
final class StoreProcess implements AutoCloseable {
    private final Path directory;
    private Process process;
    private BufferedReader answers;
    private Writer commands;

    /** Starts the process over a new directory. */
    StoreProcess() throws IOException {
        directory = Files.createTempDirectory("sharestate-store");
        start();
    }

    /** Starts it, again over the same directory. */
    void start() throws IOException {
        process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
                StoreServer.class.getName(), directory.resolve("store").toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        answers = process.inputReader(StandardCharsets.UTF_8);
        commands = process.outputWriter(StandardCharsets.UTF_8);
        expect("ready");
    }

    /** kill -9. */
    void kill() {
        Processes.end(process);
    }

    /** Starts a share partition at offset 0. */
    void initialize(String group, UUID topic, int partition) throws IOException {
        send("initialize " + group + " " + topic + " " + partition);
        expect("ok []");
    }

    /** Stages accepted offsets; answers what was said. */
    String stage(String group, UUID topic, int partition, TransactionId producer, long first, long last, int count)
            throws IOException {
        send("stage " + group + " " + topic + " " + partition + " " + producer.producerId() + " "
                + producer.epoch() + " " + producer.transactionalId() + " " + first + " " + last + " " + count);
        return answers.readLine();
    }

    /** Gives a marker on; answers what was said. */
    String marker(TransactionMarker marker) throws IOException {
        send("marker " + marker.producerId() + " " + marker.producerEpoch() + " " + marker.coordinatorEpoch() + " "
                + marker.committed());
        return answers.readLine();
    }

    /** The state, for example {@code ok 0-4=2x1 pending=0}. */
    String read(String group, UUID topic, int partition) throws IOException {
        send("read " + group + " " + topic + " " + partition);
        return answers.readLine();
    }

    @Override
    public void close() throws IOException {
        kill();
        try (Stream<Path> paths = Files.walk(directory)) {
            paths.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
        }
    }

    private void send(String command) throws IOException {
        commands.write(command + "\n");
        commands.flush();
    }

    private void expect(String wanted) throws IOException {
        String said = answers.readLine();
        if (!wanted.equals(said)) {
            throw new IOException("the store said " + said + ", not " + wanted);
        }
    }
}
