package sharestate.it;

/** The end of processes. */
final class Processes {
    private Processes() {
    }

    /** kill -9, and waits for it. */
    static void end(Process process) {
        process.destroyForcibly();
        boolean interrupted = false;
        while (process.isAlive()) {
            try {
                process.waitFor();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
