package sharestate;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;

/** Writes a request for the native library: big-endian numbers, texts as a length and UTF-8. */
final class Request {
    private ByteBuffer buffer = ByteBuffer.allocate(128);

    /** A request of an operation, by its number in the native library. */
    static Request of(Operation operation) {
        return new Request().i8(operation.ordinal());
    }

    /** Operations; the order is that of the native library. */
    enum Operation {
        INITIALIZE, WRITE, READ, SUMMARY, DELETE, STAGE, MARKER, FORCE_RESOLVE, DELETE_GROUP, DELETE_TOPIC, LIST,
        CHECKPOINT
    }

    Request i8(int value) {
        room(Byte.BYTES).put((byte) value);
        return this;
    }

    Request flag(boolean value) {
        return i8(value ? 1 : 0);
    }

    Request i16(short value) {
        room(Short.BYTES).putShort(value);
        return this;
    }

    Request i32(int value) {
        room(Integer.BYTES).putInt(value);
        return this;
    }

    Request i64(long value) {
        room(Long.BYTES).putLong(value);
        return this;
    }

    Request text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        i32(bytes.length);
        room(bytes.length).put(bytes);
        return this;
    }

    Request uuid(UUID id) {
        return i64(id.getMostSignificantBits()).i64(id.getLeastSignificantBits());
    }

    Request key(SharePartitionKey key) {
        return text(key.groupId()).uuid(key.topicId()).i32(key.partition());
    }

    Request batches(List<StateBatch> batches) {
        i32(batches.size());
        for (StateBatch batch : batches) {
            i64(batch.firstOffset()).i64(batch.lastOffset());
            i8(batch.deliveryState()).i16(batch.deliveryCount());
        }
        return this;
    }

    Request acks(List<AckRange> acks) {
        i32(acks.size());
        for (AckRange ack : acks) {
            i64(ack.firstOffset()).i64(ack.lastOffset()).i8(ack.ackType().ordinal());
            i8(ack.commitTarget()).i8(ack.abortTarget()).i16(ack.deliveryCount());
        }
        return this;
    }

    byte[] bytes() {
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    private ByteBuffer room(int bytes) {
        if (buffer.remaining() < bytes) {
            int capacity = Math.addExact(buffer.position(), Math.max(bytes, buffer.capacity()));
            buffer = ByteBuffer.wrap(Arrays.copyOf(buffer.array(), capacity)).position(buffer.position());
        }
        return buffer;
    }
}
