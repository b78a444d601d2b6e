package sharestate.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletionException;

import sharestate.ErrorClass;
import sharestate.Failures;

class PartitionErrorsTest {
    private final PartitionErrors errors = new PartitionErrors("/var/lib/state");

    @Test
    void partitionsAreAnsweredWithTheStoresCodeAndText() {
        PartitionErrors.PartitionError fenced =
                errors.of(new CompletionException(Failures.make(ErrorClass.REJECTED, 74, "an older leader")));
        assertEquals(new PartitionErrors.PartitionError((short) 74, "an older leader"), fenced);
        assertEquals(-1, errors.of(Failures.make(ErrorClass.INTERNAL, null, "no code")).code());
        assertEquals(new PartitionErrors.PartitionError((short) -1, "java.lang.IllegalStateException: odd"),
                errors.of(new IllegalStateException("odd")));
    }

    @Test
    void theEndOfAllAcknowledgementsIsToldOnceAlsoAfterLesserFailures() {
        assertEquals(0, told(ErrorClass.REJECTED).size());
        assertEquals(0, told(ErrorClass.CLOSED).size());
        List<String> lesser = told(ErrorClass.IO);
        assertEquals(1, lesser.size());
        assertTrue(lesser.get(0).contains("/var/lib/state failed (IO)"), lesser.get(0));
        assertTrue(lesser.get(0).contains("sharestate verify"), lesser.get(0));
        assertEquals(0, told(ErrorClass.IO).size());
        List<String> end = told(ErrorClass.POISONED);
        assertEquals(1, end.size());
        assertTrue(end.get(0).contains("Acknowledgements are refused from now on"), end.get(0));
        assertEquals(0, told(ErrorClass.POISONED).size());
    }

    /** The lines that a failure of a class adds to the log. */
    private List<String> told(ErrorClass errorClass) {
        PrintStream standard = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setErr(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            errors.of(Failures.make(errorClass, 56, "for a test"));
        } finally {
            System.setErr(standard);
        }
        return said.toString(StandardCharsets.UTF_8).lines().toList();
    }
}
