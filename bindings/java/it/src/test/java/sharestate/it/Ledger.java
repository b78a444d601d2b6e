package sharestate.it;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * What workers know of records: accepted with an answer, or accepted while the answer was lost, so that nobody knows.
 * Safe for several threads.
 */
final class Ledger {
    private final Set<String> accepted = new HashSet<>();
    private final Set<String> unknown = new HashSet<>();
    private final List<String> comeBack = new ArrayList<>();
    private int deliveries;
    private volatile boolean finished;
    private volatile boolean held;

    /** Of a first run. */
    Ledger() {
    }

    /** Of a run after another one, whose accepted records must not come back. */
    Ledger(Ledger before) {
        synchronized (before) {
            accepted.addAll(before.accepted);
            unknown.addAll(before.unknown);
        }
    }

    /** A record was delivered. */
    synchronized void delivered(String record) {
        deliveries++;
        if (accepted.contains(record)) {
            comeBack.add(record);
        }
    }

    /** The broker answered that these are accepted. */
    synchronized void accepted(Collection<String> records) {
        accepted.addAll(records);
        unknown.removeAll(records);
        notifyAll();
    }

    /** The answer about these was lost. */
    synchronized void unknown(Collection<String> records) {
        records.stream().filter(record -> !accepted.contains(record)).forEach(unknown::add);
        notifyAll();
    }

    /** Records accepted with an answer. */
    synchronized int accepted() {
        return accepted.size();
    }

    /** Records accepted, with an answer or without. */
    synchronized int settled() {
        return accepted.size() + unknown.size();
    }

    /** Waits, and goes on at once when so many records are settled. */
    synchronized void awaitSettled(int records) throws Exception {
        Await.untilBlocking(records + " settled records", () -> {
            if (settled() < records) {
                wait(100);
            }
            return settled() >= records;
        });
    }

    /** Accepted records that were delivered again. */
    synchronized List<String> comeBack() {
        return List.copyOf(comeBack);
    }

    /** Tells the workers to take nothing, or to go on. */
    void hold(boolean on) {
        held = on;
    }

    /** Whether workers shall take nothing. */
    boolean isHeld() {
        return held;
    }

    /** Tells the workers to stop. */
    void finish() {
        finished = true;
    }

    /** Whether workers shall stop. */
    boolean isFinished() {
        return finished;
    }

    @Override
    public synchronized String toString() {
        return "accepted=" + accepted.size() + " unanswered=" + unknown.size() + " deliveries=" + deliveries
                + " come-back=" + comeBack.size();
    }
}
