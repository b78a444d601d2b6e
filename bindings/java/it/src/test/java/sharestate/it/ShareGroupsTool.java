package sharestate.it;

import org.apache.kafka.tools.consumer.group.ShareGroupCommand;

import java.util.ArrayList;
import java.util.List;

/** The class behind kafka-share-groups.sh. */
final class ShareGroupsTool {
    private final String bootstrapServers;

    /** At this broker. */
    ShareGroupsTool(String bootstrapServers) {
        this.bootstrapServers = bootstrapServers;
    }

    /** What the tool prints, without empty lines and with single spaces, sorted below the header if there is one. */
    List<String> run(String... arguments) {
        List<String> all = new ArrayList<>(List.of("--bootstrap-server", bootstrapServers));
        all.addAll(List.of(arguments));
        List<String> lines = Captured.lines(() -> ShareGroupCommand.main(all.toArray(String[]::new)));
        int header = all.contains("--list") ? 0 : 1;
        List<String> sorted = new ArrayList<>(lines.stream().limit(header).toList());
        lines.stream().skip(header).sorted().forEach(sorted::add);
        return sorted;
    }
}
