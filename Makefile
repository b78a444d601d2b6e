# make demo       the main job: a store is killed again and again and loses nothing
# make test       every test, with the counts that every change must reach
# make lint       formatting, clippy, docs, licences
# make bench      benchmarks (ratios measured side by side in one run)
# make torture    ROUNDS rounds of kills under load; FAULTS=1 makes file calls fail below RocksDB too
# make fuzz       every fuzz target for SECONDS each
# make seeded     puts historic bugs back one at a time: each must be caught
# make models     schedules of the concurrent parts
# make mutants    changes the code at random: the tests must notice
# make coverage   which lines and branches the tests execute
# make test-c     the C library: its tests alone, under valgrind and with sanitizers
# make test-kafka the persister inside a real Kafka broker; TESTS=... only these
# make bench-kafka both persisters side by side
# make nightly    the long counts of docs/reliability.md
# Set-up is included: what is missing is installed, or named.

# Outlives checkouts: RocksDB's C++ takes a while to compile.
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)
export CARGO_TARGET_DIR ?= $(CACHE)/sharestate/target

SECONDS ?= 60
ROUNDS ?= 20
SEED ?= 1
# Always the same features, so that RocksDB is compiled once.
FEATURES := --all-features
CORE := --no-default-features --features testing

.PHONY: all setup demo test test-core test-exhaustive lint bench torture faultshim fuzz seeded models mutants coverage test-c test-kafka bench-kafka nightly fixtures

all: test

setup:
	@./tools/setup.sh

demo: setup
	cargo run --locked $(FEATURES) --bin sharestate -- demo --rounds $(ROUNDS) --seed $(SEED)

test: setup
	cargo test --locked --workspace $(FEATURES) -- --show-output

# Model, log and simulated disk only: seconds, and no C++.
test-core:
	cargo test --locked $(CORE) --lib --tests

# Every sequence of seven transactional actions, and how long it took.
test-exhaustive:
	cargo test --locked $(CORE) --test txn_exhaustive -- --nocapture

lint: setup
	cargo fmt --all -- --check
	cargo clippy --locked --workspace $(FEATURES) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked $(FEATURES) --no-deps
	@./tools/deny.sh

bench: setup
	cargo bench --locked --profile dev $(FEATURES)

fuzz:
	@./tools/fuzz.sh $(SECONDS)

torture: setup $(if $(FAULTS),faultshim)
	cargo run --locked $(FEATURES) --bin sharestate -- torture --rounds $(ROUNDS) --seed $(SEED) \
		$(if $(FAULTS),--faults)

# Beside the command, which looks for it there.
faultshim:
	@$(MAKE) -s -C tools/faultshim OUT=$(abspath $(CARGO_TARGET_DIR))/debug

seeded:
	@./tools/seeded.sh

models:
	@./tools/models.sh $(or $(SCHEDULES),10000)

mutants:
	@./tools/mutants.sh $(or $(SHARDS),8)

coverage: setup
	@./tools/coverage.sh

test-c:
	@./tools/setup.sh valgrind pkg-config
	@./tools/cbindgen.sh --check
	@./bindings/c/check.sh

test-kafka:
	@./tools/setup.sh javac:openjdk-17-jdk-headless mvn:maven
	@./bindings/java/it.sh

bench-kafka:
	@./tools/setup.sh javac:openjdk-17-jdk-headless mvn:maven
	@./bindings/java/it.sh speed

nightly: setup seeded models test-kafka
	SHARESTATE_RANDOM_SEQUENCES=100000 SHARESTATE_RETENTION_BYTES=2147483648 \
		cargo test --locked $(FEATURES) --test txn_random --test txn_retention -- --nocapture
	SHARESTATE_CRASH_STATES=30000 SHARESTATE_LOST_PAGES=100000 SHARESTATE_REORDERED_WRITES=10000 \
		SHARESTATE_SHORT_READS=10000 SHARESTATE_RECOVERY_PAIRS=20000 SHARESTATE_FAULTS=1 SHARESTATE_LOST_NAMES=5 \
		SHARESTATE_ROCKS_CRASHES=200 cargo test --locked $(FEATURES) --test crash -- --nocapture
	SHARESTATE_DAMAGE=all SHARESTATE_DAMAGE_RANDOM=1000000 cargo test --locked $(FEATURES) --test damage -- --nocapture
	SHARESTATE_KILLS=200 SHARESTATE_FAULT_ROUNDS=200 SHARESTATE_FAULT_SITES=3000 SHARESTATE_ALLOCATIONS=2000 \
		SHARESTATE_RACES=1000 SHARESTATE_SNAPSHOT_FAILURES=200 cargo test --locked $(FEATURES) --test process -- --nocapture
	for version in 4.2.0 4.3.0; do KAFKA_VERSION=$$version ./bindings/java/it.sh || exit 1; done
	@./tools/coverage.sh
	@./tools/mutants.sh 8

# Makes tests/fixtures/kafka-4.4 anew from a real Kafka broker (needs Java 17 and Maven).
fixtures:
	mvn -q -f tools/kafka-fixtures/pom.xml compile exec:java
