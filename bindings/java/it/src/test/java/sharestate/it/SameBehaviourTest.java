package sharestate.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.List;

/** The same script with both persisters. */
class SameBehaviourTest {
    @Test
    void shareGroupsBehaveAsWithKafkasOwnPersisterLineByLine() throws Exception {
        List<String> ours = run(Persisters.SHARESTATE);
        List<String> kafkas = run(Persisters.KAFKA);
        System.out.println(String.join("\n", ours));
        assertEquals(kafkas, ours);
        assertTrue(ours.size() > 30, "the script ran");
        System.out.println("counts: same-behaviour lines=" + ours.size() + " different=0");
    }

    private static List<String> run(Persisters persister) throws Exception {
        try (BrokerProcess broker = BrokerProcess.create(persister).start()) {
            return ShareScript.run(broker);
        }
    }
}
