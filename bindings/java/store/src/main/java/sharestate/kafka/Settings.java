package sharestate.kafka;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.BiConsumer;

import sharestate.StoreOptions;

/**
 * The persister's settings. A broker hands none to its persister, so they are system properties of its JVM, all of
 * which begin with {@value #PREFIX}; a name that is not known is refused, since it may be a typing error.
 *
 * @param directory the store's directory
 * @param options   how it is opened
 */
public record Settings(Path directory, StoreOptions options) {
    /** What all names begin with. */
    public static final String PREFIX = "sharestate.";

    private static final String DIRECTORY = "sharestate.dir";

    private static final Map<String, BiConsumer<StoreOptions, String>> KNOWN = new TreeMap<>(Map.ofEntries(
            Map.entry(DIRECTORY, (options, value) -> { }),
            Map.entry("sharestate.native.path", (options, value) -> { }),
            Map.entry("sharestate.create", Settings::create),
            Map.entry("sharestate.sync", Settings::sync),
            Map.entry("sharestate.segment.bytes", number(StoreOptions::segmentBytes)),
            Map.entry("sharestate.queue.bytes", number(StoreOptions::queueBytes)),
            Map.entry("sharestate.memory.bytes", number(StoreOptions::memoryBytes)),
            Map.entry("sharestate.cache.bytes", number(StoreOptions::cacheBytes)),
            Map.entry("sharestate.block.cache.bytes", number(StoreOptions::blockCacheBytes)),
            Map.entry("sharestate.reserve.bytes", number(StoreOptions::reserveBytes)),
            Map.entry("sharestate.checkpoint.interval.ms", number(
                    (options, millis) -> options.checkpointInterval(Duration.ofMillis(millis)))),
            Map.entry("sharestate.producer.id.expiration.ms", number(
                    (options, millis) -> options.producerIdExpiration(Duration.ofMillis(millis))))));

    /**
     * Reads system properties.
     *
     * @throws IllegalArgumentException that names the property and says what is wrong with it
     */
    public static Settings from(Properties properties) {
        StoreOptions options = new StoreOptions();
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith(PREFIX)) {
                apply(options, name, properties.getProperty(name));
            }
        }
        String directory = properties.getProperty(DIRECTORY);
        if (directory == null || directory.isBlank()) {
            throw new IllegalArgumentException("no store directory is set; start the broker with -D" + DIRECTORY
                    + "=/path/of/its/own, for example in KAFKA_OPTS");
        }
        return new Settings(Path.of(directory), options);
    }

    private static void apply(StoreOptions options, String name, String value) {
        BiConsumer<StoreOptions, String> setting = KNOWN.get(name);
        if (setting == null) {
            throw new IllegalArgumentException("-D" + name + " is not a setting; the settings are "
                    + String.join(", ", KNOWN.keySet()));
        }
        try {
            setting.accept(options, value);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("-D" + name + "=" + value + ": " + e.getMessage(), e);
        }
    }

    private static BiConsumer<StoreOptions, String> number(BiConsumer<StoreOptions, Long> setting) {
        return (options, value) -> {
            long number;
            try {
                number = Long.parseLong(value);
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException("a whole number is wanted", e);
            }
            setting.accept(options, number);
        };
    }

    private static void create(StoreOptions options, String value) {
        switch (value) {
            case "if-missing" -> options.create(StoreOptions.Create.IF_MISSING);
            case "never" -> options.create(StoreOptions.Create.NEVER);
            case "new" -> options.create(StoreOptions.Create.NEW);
            default -> throw new IllegalArgumentException("if-missing, never or new is wanted");
        }
    }

    private static void sync(StoreOptions options, String value) {
        switch (value) {
            case "always" -> options.syncAlways();
            case "never" -> options.syncNever();
            default -> number((o, millis) -> o.syncEvery(Duration.ofMillis(millis))).accept(options, value);
        }
    }
}
