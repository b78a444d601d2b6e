package sharestate;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;

/** Reads what the native library answered. */
final class Response {
    private final ByteBuffer buffer;

    /** Over bytes that the native library gave. */
    Response(ByteBuffer buffer) {
        this.buffer = buffer;
    }

    /** Takes the status; a failure is thrown. */
    static Response of(byte[] answer) {
        if (answer == null) {
            throw ShareStoreException.internal("the native library gave no answer", null);
        }
        return new Response(ByteBuffer.wrap(answer)).checked();
    }

    /** Takes the status; a failure is thrown. */
    Response checked() {
        if (i8() == 0) {
            return this;
        }
        ErrorClass errorClass = ErrorClass.values()[i8()];
        boolean hasCode = flag();
        int code = i16();
        throw new ShareStoreException(errorClass, hasCode ? code : null, text(), null);
    }

    boolean isEmpty() {
        return !buffer.hasRemaining();
    }

    /** The next answer of several, each with its length before it. */
    Response part() {
        int length = i32();
        ByteBuffer part = buffer.slice(buffer.position(), length);
        buffer.position(buffer.position() + length);
        return new Response(part);
    }

    byte i8() {
        return buffer.get();
    }

    boolean flag() {
        return i8() != 0;
    }

    short i16() {
        return buffer.getShort();
    }

    int i32() {
        return buffer.getInt();
    }

    long i64() {
        return buffer.getLong();
    }

    String text() {
        byte[] bytes = new byte[i32()];
        buffer.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    SharePartitionKey key() {
        String group = text();
        UUID topic = new UUID(i64(), i64());
        return new SharePartitionKey(group, topic, i32());
    }

    List<OffsetRange> ranges() {
        return list(from -> new OffsetRange(from.i64(), from.i64()));
    }

    List<PendingAck> pending() {
        return list(from -> new PendingAck(from.i64(), from.i64(), AckType.values()[from.i8()], from.i8(), from.i8(),
                from.i16(), from.i64(), from.i16(), from.flag(), from.text(), from.text(), from.i32()));
    }

    PartitionState partition() {
        return new PartitionState(i32(), i32(), i64(), i32(),
                list(from -> new StateBatch(from.i64(), from.i64(), from.i8(), from.i16())), pending());
    }

    Summary summary() {
        return new Summary(i32(), i32(), i64(), i32());
    }

    Resolved resolved() {
        boolean contradicts = flag();
        boolean orphans = flag();
        Map<SharePartitionKey, List<OffsetRange>> partitions = new LinkedHashMap<>();
        for (int left = i32(); left > 0; left--) {
            partitions.put(key(), ranges());
        }
        return new Resolved(partitions, contradicts, orphans);
    }

    Deleted deleted() {
        return new Deleted(i64(), i64());
    }

    Page page() {
        return new Page(list(from -> new Page.Row(from.key(), from.partition())), flag());
    }

    RecoveryReport recovery() {
        return new RecoveryReport(flag(), i64(), i64(), i64(), i64(), Duration.ofNanos(i64() * 1_000), text(), text());
    }

    private <T> List<T> list(Function<Response, T> item) {
        int count = i32();
        List<T> items = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            items.add(item.apply(this));
        }
        return items;
    }
}
