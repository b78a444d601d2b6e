package sharestate.it;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

import sharestate.AckRange;
import sharestate.Marker;
import sharestate.PartitionState;
import sharestate.SharePartitionKey;
import sharestate.ShareStore;
import sharestate.ShareStoreException;
import sharestate.Stage;
import sharestate.StoreOptions;

/**
 * A store in a process of its own, which can be killed: a command a line on the standard input, an answer a line on the
 * standard output. {@link StoreProcess} is the other end.
 */
final class StoreServer {
    private StoreServer() {
    }

    /** Serves the store of the directory given until the input ends. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (ShareStore store = ShareStore.open(Path.of(arguments[0]), new StoreOptions())) {
            System.out.println("ready");
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                System.out.println(answer(store, line.split(" ")));
            }
        }
    }

    private static String answer(ShareStore store, String[] words) throws InterruptedException {
        try {
            return "ok " + call(store, words).get();
        } catch (ExecutionException e) {
            ShareStoreException failure = (ShareStoreException) e.getCause();
            return "error " + failure.kafkaCode().orElse(-1) + " " + failure.getMessage();
        }
    }

    private static CompletableFuture<?> call(ShareStore store, String[] words) {
        switch (words[0]) {
            case "initialize":
                return store.initialize(key(words), 0, 0);
            case "stage":
                return store.stage(new Stage(key(words), 0, 0, Long.parseLong(words[4]), Short.parseShort(words[5]),
                        false, (byte) 2, words[6], "member", 0,
                        List.of(AckRange.accept(Long.parseLong(words[7]), Long.parseLong(words[8]),
                                Short.parseShort(words[9])))));
            case "marker":
                return store.marker(new Marker(Long.parseLong(words[1]), Short.parseShort(words[2]),
                        Integer.parseInt(words[3]), Boolean.parseBoolean(words[4]), (byte) 2));
            case "read":
                return store.read(key(words), 0).thenApply(StoreServer::text);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static SharePartitionKey key(String[] words) {
        return new SharePartitionKey(words[1], UUID.fromString(words[2]), Integer.parseInt(words[3]));
    }

    /** For example {@code 0-4=2x1 pending=0}. */
    private static String text(PartitionState state) {
        StringBuilder text = new StringBuilder();
        state.batches().forEach(batch -> text.append(batch.firstOffset()).append('-').append(batch.lastOffset())
                .append('=').append(batch.deliveryState()).append('x').append(batch.deliveryCount()).append(' '));
        return text.append("pending=").append(state.pending().size()).toString();
    }
}
