package sharestate.it;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** What a tool of Kafka's prints when its main method is called here. */
final class Captured {
    private Captured() {
    }

    /** A tool's main method. */
    interface Tool {
        void run() throws IOException;
    }

    /** Lines of the standard output, without empty ones and with single spaces. */
    static synchronized List<String> lines(Tool tool) {
        PrintStream standard = System.out;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            tool.run();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } finally {
            System.setOut(standard);
        }
        return said.toString(StandardCharsets.UTF_8).lines()
                .map(line -> line.strip().replaceAll("\\s+", " "))
                .filter(line -> !line.isEmpty())
                .toList();
    }
}
