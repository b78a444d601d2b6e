package sharestate.it;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The control batches in the log of a topic partition, as kafka-dump-log.sh shows them. */
final class MarkerLog {
    private static final Pattern BATCH =
            Pattern.compile("^baseOffset: .* producerId: (-?\\d+) producerEpoch: (-?\\d+) .*isControl: true");
    private static final Pattern MARKER = Pattern.compile("endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: (-?\\d+)");

    private final Path segment;

    /** Of partition 0 of a topic. */
    MarkerLog(BrokerProcess broker, String topic) {
        segment = broker.dataDirectory().resolve(topic + "-0").resolve("00000000000000000000.log");
    }

    /** All markers, in the order of the log. */
    List<TransactionMarker> all() {
        String[] arguments = {"--files", segment.toString(), "--print-data-log"};
        List<String> lines = Captured.lines(() -> dump(arguments));
        List<TransactionMarker> markers = new ArrayList<>();
        Matcher batch = null;
        for (String line : lines) {
            Matcher header = BATCH.matcher(line);
            Matcher marker = MARKER.matcher(line);
            if (header.find()) {
                batch = header;
            } else if (line.startsWith("baseOffset: ")) {
                batch = null;
            } else if (batch != null && marker.find()) {
                markers.add(new TransactionMarker(Long.parseLong(batch.group(1)), Short.parseShort(batch.group(2)),
                        Integer.parseInt(marker.group(2)), marker.group(1).equals("COMMIT")));
            }
        }
        return markers;
    }

    /** Waits for the marker that ends a transaction. */
    TransactionMarker await(TransactionId transaction) throws Exception {
        List<TransactionMarker> found = new ArrayList<>();
        Await.until("the marker of " + transaction, () -> {
            Optional<TransactionMarker> marker = all().stream()
                    .filter(m -> m.producerId() == transaction.producerId() && m.producerEpoch() > transaction.epoch())
                    .findFirst();
            marker.ifPresent(found::add);
            return marker.isPresent();
        });
        return found.get(0);
    }

    /** The tool moved between 4.2 and 4.3. */
    private static void dump(String[] arguments) {
        try {
            tool().getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("kafka-dump-log cannot be run", e);
        }
    }

    private static Class<?> tool() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.tools.DumpLogSegments");
        } catch (ClassNotFoundException e) {
            return Class.forName("kafka.tools.DumpLogSegments");
        }
    }
}
