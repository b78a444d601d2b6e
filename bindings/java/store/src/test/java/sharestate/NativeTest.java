package sharestate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.UUID;

/** The boundary itself: whatever is handed over, the JVM lives and is told what is wrong. */
@Timeout(120)
class NativeTest {
    private static final SharePartitionKey KEY = new SharePartitionKey("g", new UUID(1, 2), 0);

    @TempDir
    private Path directory;

    @BeforeAll
    static void load() {
        Native.load();
    }

    @Test
    void wrongHandlesAreErrors() {
        byte[] request = Request.of(Request.Operation.SUMMARY).key(KEY).bytes();
        for (long handle : new long[] {Long.MIN_VALUE, -1, 0, 1L << 40, Long.MAX_VALUE}) {
            assertEquals(ErrorClass.CLOSED, failure(Native.submit(handle, 1, request)).errorClass());
            assertEquals(ErrorClass.CLOSED, failure(Native.close(handle)).errorClass());
            assertNull(Native.await(handle));
        }
    }

    @Test
    void nullIsAnError() {
        assertThrows(RuntimeException.class, () -> Native.open(null));
        assertThrows(RuntimeException.class, () -> Native.submit(1, 1, null));
    }

    @Test
    void bytesThatAreNoRequestAreErrors() {
        Random random = new Random(1);
        long handle = open();
        int refused = 0;
        int answered = 0;
        byte[] whole = Request.of(Request.Operation.WRITE).key(KEY).i32(0).i32(0).i64(0).i32(0)
                .batches(List.of(new StateBatch(0, 1, (byte) 2, (short) 1))).bytes();
        for (int length = 0; length < whole.length; length++) {
            assertEquals(ErrorClass.INTERNAL, failure(Native.submit(handle, 0, Arrays.copyOf(whole, length))).errorClass());
            refused++;
        }
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = new byte[random.nextInt(64)];
            random.nextBytes(bytes);
            if (bytes.length > 0) {
                bytes[0] = (byte) random.nextInt(14);
            }
            byte[] answer = Native.submit(handle, i, bytes);
            if (answer[0] == 0) {
                answered++;
            } else {
                refused++;
            }
        }
        for (int i = 0; i < 5_000; i++) {
            byte[] bytes = whole.clone();
            bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
            answered += Native.submit(handle, i, bytes)[0] == 0 ? 1 : 0;
        }
        for (int i = 0; i < 1_000; i++) {
            byte[] bytes = new byte[random.nextInt(120)];
            random.nextBytes(bytes);
            assertTrue(Native.open(bytes)[0] == 1, "noise opens no store");
        }
        System.out.println("counts: noise refused=" + refused + " answered=" + answered);
        assertEquals(0, Native.close(handle)[0]);
        while (Native.await(handle) != null) {
            // Fetches what was answered, up to the end.
        }
        assertTrue(refused > 10_000);
    }

    @Test
    void eachCallIsAnsweredExactlyOnceUnderItsOwnId() {
        long handle = open();
        int calls = 3_000;
        assertEquals(0, Native.submit(handle, 0, Request.of(Request.Operation.INITIALIZE).key(KEY).i32(0).i64(0).bytes())[0]);
        for (int id = 1; id < calls; id++) {
            // Of two kinds, so that an answer under the id of its neighbour is seen.
            Request request = id % 2 == 0 ? Request.of(Request.Operation.SUMMARY).key(KEY)
                    : Request.of(Request.Operation.WRITE).key(KEY).i32(0).i32(0).i64(id).i32(0).batches(List.of());
            assertEquals(0, Native.submit(handle, id, request.bytes())[0]);
        }
        assertEquals(0, Native.close(handle)[0]);
        boolean[] answered = new boolean[calls];
        for (byte[] answers = Native.await(handle); answers != null; answers = Native.await(handle)) {
            Response all = new Response(ByteBuffer.wrap(answers));
            while (!all.isEmpty()) {
                int id = (int) all.i64();
                Response answer = all.part().checked();
                assertFalse(answered[id], "an answer comes once");
                answered[id] = true;
                if (id > 0 && id % 2 == 0) {
                    assertEquals(id - 1, answer.summary().startOffset());
                } else {
                    assertEquals(List.of(), answer.pending());
                }
                assertTrue(answer.isEmpty());
            }
        }
        for (boolean one : answered) {
            assertTrue(one, "every call is answered");
        }
    }

    private long open() {
        return Response.of(Native.open(new StoreOptions().encode(directory.resolve("store")))).i64();
    }

    private static ShareStoreException failure(byte[] answer) {
        return assertThrows(ShareStoreException.class, () -> Response.of(answer));
    }
}
