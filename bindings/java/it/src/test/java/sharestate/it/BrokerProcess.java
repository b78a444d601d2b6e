package sharestate.it;

import kafka.tools.StorageTool;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.Uuid;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Writer;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * One unmodified Kafka broker (controller included) in a process of its own, on loopback and in a directory of its own.
 * It is gone, directory included, after {@link #close}; a hook ends it when this JVM ends before that.
 */
final class BrokerProcess implements AutoCloseable {
    /** The setting that says how often a record is delivered at most. */
    static final String DELIVERY_LIMIT_SETTING = "group.share.delivery.count.limit";
    /** Its value, unless a test sets another one. */
    static final int DELIVERY_LIMIT = 3;

    private Persisters persister;
    private final Path home;
    private final Properties settings;
    private final Map<String, String> systemProperties = new TreeMap<>();
    /** These start quickest. */
    private List<String> jvmOptions = List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");
    private List<String> prefix = List.of();
    private final Thread hook = new Thread(this::destroy);
    private Process process;

    private BrokerProcess(Persisters persister, Path home, Properties settings) {
        this.persister = persister;
        this.home = home;
        this.settings = settings;
        if (persister == Persisters.SHARESTATE) {
            systemProperties.put("sharestate.dir", home.resolve("share-state").toString());
        }
        Runtime.getRuntime().addShutdownHook(hook);
    }

    /** Formats a new broker; it is not started yet. */
    static BrokerProcess create(Persisters persister) throws IOException {
        Path home = Files.createTempDirectory("sharestate-it");
        Properties settings = settings(persister, home.resolve("data"), freePort(), freePort());
        BrokerProcess broker = new BrokerProcess(persister, home, settings);
        broker.writeSettings();
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        String[] format = {"format", "--standalone", "-t", Uuid.randomUuid().toString(), "-c",
            broker.settingsFile().toString()};
        if (StorageTool.execute(format, new PrintStream(said, true, StandardCharsets.UTF_8)) != 0) {
            throw new IOException("formatting failed: " + said.toString(StandardCharsets.UTF_8));
        }
        return broker;
    }

    /** Sets a system property of the broker's JVM, for its next start. */
    BrokerProcess with(String name, String value) {
        systemProperties.put(name, value);
        return this;
    }

    /** Changes a setting of the broker, for its next start. */
    BrokerProcess set(String name, Object value) throws IOException {
        settings.put(name, value.toString());
        writeSettings();
        return this;
    }

    /** Options of the broker's JVM, for its next start, instead of those that make it start quickly. */
    BrokerProcess jvm(String... options) {
        jvmOptions = List.of(options);
        return this;
    }

    /** Changes the persister, for the next start. */
    BrokerProcess use(Persisters other) throws IOException {
        persister = other;
        return set("group.share.persister.class.name", other.className());
    }

    /** Starts the broker inside the mounts of another process. */
    BrokerProcess inside(SmallDisk disk) {
        prefix = disk.enter();
        return with("sharestate.dir", disk.directory().resolve("share-state").toString());
    }

    /** Starts the broker and waits until it answers. */
    BrokerProcess start() throws Exception {
        launch();
        try {
            Await.until("the broker to answer", () -> {
                if (!process.isAlive()) {
                    throw new IllegalStateException("the broker ended early");
                }
                return answers();
            });
        } catch (TimeoutException | IllegalStateException e) {
            throw new IllegalStateException(e.getMessage() + ":\n" + log(), e);
        }
        return this;
    }

    /** Starts a broker that is expected to give up; answers its exit code. */
    int startInVain() throws Exception {
        launch();
        if (!process.waitFor(Await.LIMIT.toSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException("the broker did not give up:\n" + log());
        }
        return process.exitValue();
    }

    /** kill -9. */
    void kill() {
        Processes.end(process);
    }

    /** SIGTERM, and waits for the end. */
    void stop() throws Exception {
        process.destroy();
        if (!process.waitFor(Await.LIMIT.toSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException("the broker does not stop:\n" + log());
        }
    }

    /** Address for clients; it stays the same over a restart. */
    String bootstrapServers() {
        return settings.getProperty("advertised.listeners").replace("PLAINTEXT://", "");
    }

    /** Where the broker keeps its logs. */
    Path dataDirectory() {
        return home.resolve("data");
    }

    /** The store's directory, with our persister. */
    Path storeDirectory() {
        return Path.of(systemProperties.get("sharestate.dir"));
    }

    /** Everything the broker printed, over all starts. */
    String log() throws IOException {
        return Files.readString(logFile());
    }

    /** The lines of the log that hold a text. */
    List<String> logged(String text) throws IOException {
        return log().lines().filter(line -> line.contains(text)).toList();
    }

    @Override
    public void close() throws IOException {
        destroy();
        Runtime.getRuntime().removeShutdownHook(hook);
        try (Stream<Path> paths = Files.walk(home)) {
            paths.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
        }
    }

    private void destroy() {
        if (process != null) {
            Processes.end(process);
        }
    }

    private void launch() throws IOException {
        List<String> command = new ArrayList<>(prefix);
        command.addAll(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xms256m", "-Xmx768m",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.log.sharestate=info"));
        command.addAll(jvmOptions);
        systemProperties.forEach((name, value) -> command.add("-D" + name + "=" + value));
        command.addAll(List.of("-cp", classPath(), "kafka.Kafka", settingsFile().toString()));
        process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(logFile().toFile()))
                .start();
    }

    /** Kafka's jars as they are; with our persister our jar before them. */
    private String classPath() {
        List<String> entries = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> entry.endsWith(".jar"))
                .filter(entry -> !entry.contains("junit") && !entry.contains("surefire") && !isOurs(entry))
                .collect(Collectors.toCollection(ArrayList::new));
        if (persister == Persisters.SHARESTATE) {
            entries.add(0, jar());
        }
        return String.join(File.pathSeparator, entries);
    }

    private static boolean isOurs(String entry) {
        return Path.of(entry).getFileName().toString().startsWith("sharestate-");
    }

    /** Our jar. */
    static String jar() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(BrokerProcess::isOurs)
                .filter(entry -> entry.endsWith(".jar"))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("the jar is not on the class path; run it.sh"));
    }

    private boolean answers() {
        Map<String, Object> client = Map.of(
                AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers(),
                AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, 1_000,
                AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 2_000);
        try (Admin admin = Admin.create(client)) {
            return !admin.describeCluster().nodes().get(3, TimeUnit.SECONDS).isEmpty();
        } catch (Exception e) {
            return false;
        }
    }

    private Path settingsFile() {
        return home.resolve("server.properties");
    }

    private Path logFile() {
        return home.resolve("broker.log");
    }

    private void writeSettings() throws IOException {
        try (Writer writer = Files.newBufferedWriter(settingsFile())) {
            settings.store(writer, null);
        }
    }

    /** Below those that systems give to clients, so that it stays free while the broker is down. */
    private static int freePort() throws IOException {
        IOException last = null;
        for (int i = 0; i < 100; i++) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 32_000);
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (BindException e) {
                last = e;
            }
        }
        throw new IOException("no port is free", last);
    }

    private static Properties settings(Persisters persister, Path data, int brokerPort, int controllerPort) {
        Properties p = new Properties();
        p.put("process.roles", "broker,controller");
        p.put("node.id", "1");
        p.put("listeners", "PLAINTEXT://127.0.0.1:" + brokerPort + ",CONTROLLER://127.0.0.1:" + controllerPort);
        p.put("advertised.listeners", "PLAINTEXT://127.0.0.1:" + brokerPort);
        p.put("controller.listener.names", "CONTROLLER");
        p.put("controller.quorum.bootstrap.servers", "127.0.0.1:" + controllerPort);
        p.put("log.dirs", data.toString());
        p.put("auto.create.topics.enable", "false");
        p.put("offsets.topic.num.partitions", "1");
        p.put("offsets.topic.replication.factor", "1");
        p.put("transaction.state.log.num.partitions", "1");
        p.put("transaction.state.log.replication.factor", "1");
        p.put("transaction.state.log.min.isr", "1");
        p.put("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000");
        p.put("share.coordinator.state.topic.num.partitions", "4");
        p.put("share.coordinator.state.topic.replication.factor", "1");
        p.put("share.coordinator.state.topic.min.isr", "1");
        p.put("group.share.persister.class.name", persister.className());

        // Quick group membership, also without those whose broker was killed, and lock times short enough to be waited for.
        p.put("group.share.min.heartbeat.interval.ms", "500");
        p.put("group.share.heartbeat.interval.ms", "500");
        p.put("group.share.min.session.timeout.ms", "15000");
        p.put("group.share.session.timeout.ms", "15000");
        p.put("group.share.min.record.lock.duration.ms", "1000");
        p.put(DELIVERY_LIMIT_SETTING, Integer.toString(DELIVERY_LIMIT));
        return p;
    }
}
