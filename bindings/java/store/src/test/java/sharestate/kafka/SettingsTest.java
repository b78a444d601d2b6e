package sharestate.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;
import java.util.Properties;

class SettingsTest {
    @Test
    void theDirectoryIsAllThatIsNeeded() {
        assertEquals(Path.of("/var/lib/share"), Settings.from(properties("sharestate.dir", "/var/lib/share")).directory());
    }

    @Test
    void everySettingIsRead() {
        Properties all = properties("sharestate.dir", "/d", "sharestate.create", "never", "sharestate.sync", "50",
                "sharestate.segment.bytes", "1048576", "sharestate.queue.bytes", "1", "sharestate.memory.bytes", "1",
                "sharestate.cache.bytes", "1", "sharestate.block.cache.bytes", "1", "sharestate.reserve.bytes", "1",
                "sharestate.checkpoint.interval.ms", "1", "sharestate.producer.id.expiration.ms", "1",
                "sharestate.native.path", "/l");
        assertEquals(Path.of("/d"), Settings.from(all).directory());
    }

    @Test
    void whatIsMissingOrWrongIsNamed() {
        assertRefused("-Dsharestate.dir=/path", properties());
        assertRefused("-Dsharestate.dri is not a setting", properties("sharestate.dir", "/d", "sharestate.dri", "/d"));
        assertRefused("-Dsharestate.sync=often: a whole number is wanted",
                properties("sharestate.dir", "/d", "sharestate.sync", "often"));
        assertRefused("-Dsharestate.queue.bytes=0: queue bytes: 0 is not above zero",
                properties("sharestate.dir", "/d", "sharestate.queue.bytes", "0"));
        assertRefused("-Dsharestate.create=yes: if-missing, never or new",
                properties("sharestate.dir", "/d", "sharestate.create", "yes"));
    }

    private static void assertRefused(String wanted, Properties properties) {
        String said = assertThrows(IllegalArgumentException.class, () -> Settings.from(properties)).getMessage();
        assertTrue(said.contains(wanted), said);
    }

    private static Properties properties(String... namesAndValues) {
        Properties properties = new Properties();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            properties.setProperty(namesAndValues[i], namesAndValues[i + 1]);
        }
        return properties;
    }
}
