package sharestate.it;

import scala.Console;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** What a tool of Kafka's prints when its main method is called here. */
final class Captured {
    private Captured() {
    }

    /** A tool's main method. */
    interface Tool {
        void run();
    }

    /** Lines of the standard output, without empty ones and with single spaces. */
    static synchronized List<String> lines(Tool tool) {
        PrintStream standard = System.out;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream captured = new PrintStream(said, true, StandardCharsets.UTF_8);
        System.setOut(captured);
        try {
            // Tools written in Scala, as those of 4.2, print to what the standard output was when Scala's console began.
            Console.withOut(captured, () -> {
                tool.run();
                return null;
            });
        } finally {
            System.setOut(standard);
        }
        return said.toString(StandardCharsets.UTF_8).lines()
                .map(line -> line.strip().replaceAll("\\s+", " "))
                .filter(line -> !line.isEmpty())
                .toList();
    }
}
